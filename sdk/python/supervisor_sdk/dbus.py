"""Methods of services on the host's system bus that the policy names. Capability `dbus`; the device calls them as root."""

import json
from typing import Any

from componentize_py_types import Err
from wit_world.imports import dbus as wit

from .capability import answers
from .errors import BadGateway

_answers = answers(Refused=BadGateway, Unreachable=BadGateway, Unreadable=BadGateway)


@_answers
async def call(
    service: str, path: str, interface: str, member: str, signature: str = "", arguments: list | tuple = ()
) -> list[Any]:
    """Calls a method, and returns the values of its answer. `signature` has the types of the arguments in D-Bus's
    letters, such as `ss` for two texts. The arguments have at most 256 KiB as JSON, the answer at most 512 KiB, and the
    call takes at most 20 s. A variant is `{"type": "s", "data": "kitchen"}`, a structure is a list, and a dictionary
    whose keys are texts is a `dict`::

        [name] = await dbus.call(
            "org.freedesktop.hostname1", "/org/freedesktop/hostname1",
            "org.freedesktop.DBus.Properties", "Get", "ss", ["org.freedesktop.hostname1", "Hostname"],
        )
        name["data"]
    """
    method = wit.MethodCall(service, path, interface, member, signature, json.dumps(list(arguments)))
    try:
        return json.loads(await wit.call(method))
    except Err as raised:
        refusal = getattr(raised.value, "value", None)
        if type(raised.value).__name__.endswith("_Refused"):
            raise BadGateway(f"{refusal.message} ({refusal.name})") from None
        raise
