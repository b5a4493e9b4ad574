"""Requests to the device's own API, to the routes that the policy names. Capability `api`.

    answer = await api.send("/v2/state/status")
    containers = answer.json()["containers"]

A request has the rights of the caller that the plugin is called for: of a service's key, or of the device for an event.
The body of a request has at most 512 KiB, an answer at most 1 MiB; the whole exchange takes at most 60 s.
"""

import json as json_format
from dataclasses import dataclass
from typing import Any

from wit_world.imports import api as wit

from .capability import answers, bytes_of
from .errors import Unavailable
from .whole_answer import WholeAnswer


@dataclass
class ApiResponse(WholeAnswer):
    """The answer of the device's own API."""

    status: int
    content_type: str | None
    body: bytes

    _answerer = "the device's own API"


@answers(Unavailable=Unavailable)
async def send(
    path: str, method: str = "GET", *, json: Any = None, content_type: str | None = None, body: bytes | str = b""
) -> ApiResponse:
    """Sends a request to a path, with its query, and waits for the whole answer. An answer is not an error, whatever its
    status. `json` is a body in JSON; any other body is `body`, of the type `content_type`."""
    if json is not None:
        content_type, body = "application/json", json_format.dumps(json)
    answer = await wit.send(wit.Request(method, path, content_type, bytes_of(body)))
    return ApiResponse(answer.status, answer.content_type, answer.body)
