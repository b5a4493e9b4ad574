"""Bodies of requests and answers, as a whole or in pieces."""

from collections.abc import AsyncIterator

import componentize_py_async_support
import wit_world
from componentize_py_async_support.streams import ByteStreamReader
from wit_world.imports import types as wit

from .capability import bytes_of
from .errors import Internal, TooLarge

CHUNK = 64 << 10
"""How much of a stream is requested at a time, in bytes."""


class Body:
    """The body of a request or an answer: nothing, bytes, or a stream of bytes.

    The host chooses which of them a request has; `async for` and `bytes` read either::

        async def shout(text: Body):
            async for piece in text:
                yield piece.upper()
    """

    def __init__(self, content: bytes | str = b""):
        self._bytes = bytes_of(content)
        self._stream: ByteStreamReader | None = None

    @classmethod
    def of_stream(cls, stream: ByteStreamReader) -> "Body":
        """Creates a body from a stream of the host."""
        body = cls()
        body._stream = stream
        return body

    @classmethod
    def of_wit(cls, body: wit.Body) -> "Body":
        match body:
            case wit.Body_Bytes(value):
                return cls(value)
            case wit.Body_Stream(value):
                return cls.of_stream(value)
            case _:
                return cls()

    def into_wit(self) -> wit.Body:
        """Converts the body to that of an answer. The data of a stream does not pass through the plugin."""
        if self._stream is not None:
            return wit.Body_Stream(self._stream)
        return wit.Body_Bytes(self._bytes) if self._bytes else wit.Body_Empty()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yields the body's pieces, never an empty one."""
        if self._stream is None:
            content, self._bytes = self._bytes, b""
            if content:
                yield content
            return
        with self._stream as stream:
            while not stream.writer_dropped:
                piece = await stream.read(CHUNK)
                if piece:
                    yield piece

    async def bytes(self, limit: int = 10 << 20) -> bytes:
        """Reads the whole body. Raises `TooLarge` if it has more than `limit` bytes."""
        pieces, length = [], 0
        async for piece in self:
            length += len(piece)
            if length > limit:
                raise TooLarge(f"the body is longer than {limit} bytes")
            pieces.append(piece)
        return b"".join(pieces)


async def stream_of(pieces, report) -> wit.Body:
    """Returns a body that a separate task writes from a generator's pieces. Raises the error of a generator that fails
    before its first piece: nothing has been sent, so it is still an answer. The body ends with the last piece, or with an
    exception, for which `report` is called."""
    rest = _bytes_of(pieces)
    first = await anext(rest, None)
    writer, reader = wit_world.byte_stream()

    async def write() -> None:
        with writer:
            piece = first
            try:
                while piece is not None:
                    if await writer.write_all(piece) < len(piece):
                        return  # The caller has disconnected: nobody reads the rest.
                    piece = await anext(rest, None)
            except Exception as error:
                report(error)
                # The host closes the connection of a call that fails, so the caller sees that data is missing.
                raise
            finally:
                await rest.aclose()

    componentize_py_async_support.spawn(write())
    return wit.Body_Stream(reader)


async def _bytes_of(pieces) -> AsyncIterator[bytes]:
    """Yields the pieces of a generator, which may be asynchronous, as bytes. The generator is closed with this one."""
    try:
        if hasattr(pieces, "__aiter__"):
            async for piece in pieces:
                yield _encoded(piece, pieces)
        else:
            for piece in pieces:
                yield _encoded(piece, pieces)
    finally:
        if hasattr(pieces, "aclose"):
            await pieces.aclose()
        elif hasattr(pieces, "close"):
            pieces.close()


def _encoded(piece, pieces) -> bytes:
    try:
        return bytes_of(piece)
    except TypeError:
        generator = getattr(pieces, "__name__", type(pieces).__name__)
        raise Internal(
            f"failed to write the answer: `{generator}` yields a value of the type `{type(piece).__name__}`, but a piece must"
            " be text or bytes; `json.dumps` writes other values as text"
        ) from None
