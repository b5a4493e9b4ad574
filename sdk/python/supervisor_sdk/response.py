"""The answer to a request, for handlers that need more than text, JSON or a generator."""

import dataclasses
import json
from collections.abc import AsyncIterable, Callable, Iterable
from typing import Any

from wit_world.imports import types as wit

from .body import Body, stream_of
from .capability import whole_number
from .errors import Internal

JSON = "application/json; charset=utf-8"
TEXT = "text/plain; charset=utf-8"

Content = None | str | bytes | Body | dict | list | int | float | bool | Iterable | AsyncIterable


class Response:
    """An answer with its status, headers and content. The content is anything that a handler may also return directly:
    text, bytes, a `Body`, a value that JSON can express, a dataclass, or a generator, whose pieces are streamed::

        return Response({"id": 7}, status=201, headers={"location": "/v3/things/7"})
        return Response(rows(), content_type="text/csv")

    The status and the headers are sent with a generator's first piece.
    """

    def __init__(
        self,
        content: Content = None,
        *,
        status: int = 200,
        content_type: str | None = None,
        headers: dict[str, str] | Iterable[tuple[str, str]] = (),
    ):
        self.content = content
        self.status = whole_number(status, 16)
        self.headers = list(headers.items() if isinstance(headers, dict) else headers)
        self.content_type = content_type

    async def into_wit(self, report: Callable[[Exception], None]) -> wit.Response:
        body, content_type = await _body(self.content, report)
        headers = [(name.lower(), str(value).encode()) for name, value in self.headers]
        content_type = self.content_type or content_type
        if content_type and not any(name == "content-type" for name, _ in headers):
            headers.insert(0, ("content-type", content_type.encode()))
        return wit.Response(self.status, headers, body)


async def _body(content: Content, report: Callable[[Exception], None]) -> tuple[wit.Body, str | None]:
    """Returns the body, and its type unless the answer names another one."""
    match content:
        case None:
            return wit.Body_Empty(), None
        case str():
            return wit.Body_Bytes(content.encode()), TEXT
        case bytes() | bytearray() | memoryview():
            return wit.Body_Bytes(bytes(content)), "application/octet-stream"
        case Body():
            return content.into_wit(), None
    if hasattr(content, "__aiter__") or hasattr(content, "__next__"):
        return await stream_of(content, report), TEXT
    return wit.Body_Bytes(json_of(content, "text, bytes, a generator")), JSON


def json_of(value: Any, others: str) -> bytes:
    """Writes a value, in which there may be dataclasses, as JSON. Raises `Internal` if it is neither JSON nor one of
    `others`, which names what the caller accepts besides JSON."""

    def plain(value: Any) -> Any:
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return dataclasses.asdict(value)
        raise TypeError(f"a value of the type `{type(value).__name__}` is neither {others} nor JSON")

    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=plain)
    except (TypeError, ValueError) as error:
        raise Internal(f"failed to write the answer: {error}") from None
    return text.encode()
