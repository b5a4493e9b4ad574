"""A plugin: plugin.toml says what it answers and needs, and names the functions here."""

from supervisor_sdk import store


async def hello(name: str):
    # Each call runs in a fresh instance, so what must last is in the store.
    count = await store.update_json("count", lambda count: (count or 0) + 1)
    return f"Hello, {name}! This is call {count}.\n"
