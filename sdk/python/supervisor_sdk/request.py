"""The whole request, for handlers that need it."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl

from wit_world.imports import types as wit

from . import json_text
from .body import Body
from .errors import BadRequest, UnsupportedType


class MissingBody(BadRequest):
    """The request has no body, for which a handler's parameter may have a default."""


class Headers:
    """Header fields in the order in which they were received. Names are in lower case, and may occur more than once."""

    def __init__(self, fields: list[tuple[str, bytes]]):
        self._fields = fields

    def get(self, name: str, default: str | None = None) -> str | None:
        """Returns the first value of `name`."""
        name = name.lower()
        return next((value for found, value in self if found == name), default)

    def get_all(self, name: str) -> list[str]:
        """Returns all values of `name`."""
        name = name.lower()
        return [value for found, value in self if found == name]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Yields all fields. A value that is not UTF-8 is read as Latin-1, as browsers do."""
        for name, value in self._fields:
            try:
                yield name, value.decode()
            except UnicodeDecodeError:
                yield name, value.decode("latin-1")

    def __contains__(self, name: str) -> bool:
        return self.get(name) is not None


class Request:
    """One HTTP request on one of the plugin's routes. The host has checked the caller's key, and has removed it
    from the query and the headers."""

    def __init__(self, request: wit.Request):
        self.method: str = request.method
        """In upper case."""
        self.path: str = request.path
        """As received, percent-encoded, without the query."""
        self.route: str = request.route
        """The matching pattern of `plugin.toml`."""
        self.params: dict[str, str] = dict(request.params)
        """The values of the pattern's `:names`."""
        self.query_string: str = request.query
        """As received, without the question mark."""
        self.headers = Headers(request.headers)
        self.body = Body.of_wit(request.body)

    @property
    def query(self) -> dict[str, list[str]]:
        """The query's parameters: all values of each name."""
        values: dict[str, list[str]] = {}
        for name, value in parse_qsl(self.query_string, keep_blank_values=True):
            values.setdefault(name, []).append(value)
        return values

    async def json(self) -> Any:
        """Reads a JSON body. It must not be missing, and must be declared as JSON or have no declared type."""
        declared, _, parameters = (self.headers.get("content-type") or "application/json").partition(";")
        declared = declared.strip().lower()
        if declared != "application/json" and not (declared.startswith("application/") and declared.endswith("+json")):
            raise UnsupportedType(f"the body is `{declared[:100]}`, but must be `application/json`")
        if self.headers.get("content-encoding", "identity").lower() != "identity":
            raise UnsupportedType("compressed bodies are not supported: send it without `Content-Encoding`")
        content = await self.body.bytes()
        if not content:
            raise MissingBody("the body is missing: it must be JSON")
        try:
            return json_text.parse(content)
        except ValueError as error:
            raise BadRequest(f"the body {error}") from None
