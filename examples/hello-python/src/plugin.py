"""Greets, counts its calls and streams: the example of a plugin in Python."""

from dataclasses import dataclass

from supervisor_sdk import BadRequest, Body, NotFound, log, store, timer

GREETINGS = {"en": "Hello", "fr": "Salut"}


async def hello(name: str, language: str = "en"):
    if language not in GREETINGS:
        raise NotFound(f"there is no greeting in `{language}`")
    calls = await store.update("calls", lambda calls: str(int(calls or 0) + 1))
    log.info(f"{name} is greeted")
    return {"greeting": f"{GREETINGS[language]}, {name}!", "calls": int(calls)}


async def countdown(name: str, seconds: int = 3):
    """Streams: each piece goes to the caller as soon as it is yielded."""
    for left in range(seconds, 0, -1):
        yield f"{left}\n"
        await timer.sleep(1)
    yield f"Hello, {name}!\n"


@dataclass
class Order:
    item: str
    count: int = 1


async def order(order: Order):
    if order.count < 1:
        raise BadRequest("`count` must be at least 1")
    return {"ordered": order.item, "count": order.count}


async def shout(text: Body):
    """Streams both ways: answers in capitals while the request is still arriving."""
    async for piece in text:
        yield piece.upper()
