"""Other plugins' own actions that the policy names. Capability `actions`.

    by = await actions.call_json("acme-rails/set", {"name": "5v", "on": True})

The name of an action consists of the name of the plugin that provides it, a slash, and the action's own name. Input and
output have at most 512 KiB each, and waiting counts as wall time of the call. Raises `Conflict` if the other plugin
refuses, `BadGateway` if it fails, and `Unavailable` if no plugin of the device has the action.
"""

import json
from typing import Any

from wit_world.imports import actions as wit

from . import json_text
from .capability import answers, bytes_of
from .errors import BadGateway, Conflict, Unavailable

_answers = answers(Unavailable=Unavailable, Refused=Conflict, Failed=BadGateway)


@_answers
async def call(action: str, input: bytes | str = b"") -> bytes:
    """Calls an action, and returns its answer."""
    return await wit.call(action, bytes_of(input))


async def call_json(action: str, input: Any = None) -> Any:
    """Like `call`, with JSON."""
    output = await call(action, json.dumps(input))
    try:
        return json_text.parse(output)
    except ValueError as error:
        raise BadGateway(f"`{action}` answered something unexpected: it {error}") from None
