"""Requests to the hosts that the policy names. Capability `http`.

    answer = await http.send("https://api.weather.example/now")
    celsius = answer.json()["celsius"]

The device resolves the name, checks certificates and follows no redirects. The body of a request has at most 512 KiB,
an answer at most 1 MiB; the whole exchange takes at most 60 s, and counts as wall time of the call.
"""

from dataclasses import dataclass

from wit_world.imports import http as wit

from .capability import answers, bytes_of
from .errors import BadGateway
from .whole_answer import WholeAnswer


@dataclass
class HttpResponse(WholeAnswer):
    """The answer of another host. The names of `headers` are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    _answerer = "the other host"


@answers(Unreachable=BadGateway, TooLarge=BadGateway)
async def send(
    url: str, method: str = "GET", *, headers: dict[str, str] | None = None, body: bytes | str = b""
) -> HttpResponse:
    """Sends a request, and waits for the whole answer. An answer is not an error, whatever its status. `url` begins with
    `https://` or `http://`; there are at most 64 `headers`."""
    fields = [(name, value.encode()) for name, value in (headers or {}).items()]
    answer = await wit.send(wit.Request(method, url, fields, bytes_of(body)))
    texts = {name: value.decode(errors="replace") for name, value in answer.headers}
    return HttpResponse(answer.status, texts, answer.body)
