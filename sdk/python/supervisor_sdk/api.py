"""Requests to the device's own API, to the routes that the policy names. Capability `api`.

    answer = await api.send("/v2/state/status")
    containers = answer.json()["containers"]

A request has the rights of whoever the plugin is called for: of the key of a service, or of the device for an event. A
request has at most 512 KiB of body, an answer at most 1 MiB; all of it takes at most 60 s.
"""

import json as json_format
from dataclasses import dataclass
from typing import Any

from wit_world.imports import api as wit

from .capability import answers
from .errors import BadGateway, Unavailable


@dataclass
class ApiResponse:
    """The answer of the device's own API."""

    status: int
    content_type: str | None
    body: bytes

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    def text(self) -> str:
        return self.body.decode(errors="replace")

    def json(self) -> Any:
        """Raises `BadGateway` if the status is not 200 to 299, or the body is another one."""
        if not self.ok:
            raise BadGateway(f"the device's own API answered {self.status}")
        try:
            return json_format.loads(self.body)
        except ValueError as error:
            raise BadGateway(f"an unexpected answer: {error}") from None


@answers(Unavailable=Unavailable)
async def send(
    path: str, method: str = "GET", *, json: Any = None, content_type: str | None = None, body: bytes | str = b""
) -> ApiResponse:
    """Sends a request, and waits for the whole answer. An answer of any status is no error."""
    if json is not None:
        content_type, body = "application/json", json_format.dumps(json)
    content = body.encode() if isinstance(body, str) else body
    answer = await wit.send(wit.Request(method, path, content_type, content))
    return ApiResponse(answer.status, answer.content_type, answer.body)
