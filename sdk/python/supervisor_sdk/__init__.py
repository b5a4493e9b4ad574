"""What a plugin of the device supervisor is written with in Python.

A plugin is a `plugin.toml` and a module with one function for each of its routes::

    from supervisor_sdk import NotFound, store

    RAILS = {"5v": 5.1, "3v3": 3.3}

    async def rail(name: str, digits: int = 1):
        if name not in RAILS:
            raise NotFound(f"there is no rail `{name}`")
        await store.update("calls", lambda calls: str(int(calls or 0) + 1))
        return {"rail": name, "volts": round(RAILS[name], digits)}

- **In**: a parameter that is named as one of the route's `:names` takes that; another takes the query's parameter of
  its name. Annotations say what the text is parsed as. A parameter that is a `dict`, a dataclass or `Json` takes the
  JSON body, and `Request`, `Body`, `Headers` and `Caller` take those. What does not fit is answered with a 400 that
  names the parameter, before the function runs.
- **Out**: text, a `dict`, a `list` or a dataclass (JSON), `bytes`, `None`, a `Response`, or a generator, whose pieces
  are streamed.
- **Errors**: `raise NotFound(...)` and its like answer in the format that all errors of the device have.
- **Capabilities**: the modules `store`, `led`, `units` and so on need a line in `[capabilities]` of `plugin.toml`;
  `log`, `config`, `timer` and `Caller` do not.

The build imports the plugin, and each call runs in a fresh instance that begins where the import ended: variables are
as they were then, whatever another call did to them, and what has not been imported then cannot be imported any more.
What a plugin prints goes to the log.
"""

import importlib
from typing import TYPE_CHECKING

from .body import Body
from .caller import Caller
from .errors import (
    BadGateway,
    BadRequest,
    Conflict,
    Error,
    Forbidden,
    Internal,
    Locked,
    NotFound,
    TooLarge,
    TooMany,
    Unauthorized,
    Unavailable,
    UnsupportedType,
)
from .parameters import Json
from .request import Headers, Request
from .response import Response

if TYPE_CHECKING:
    from . import (
        api, cloud, config, dbus, device, gpio, host_name, http, i2c, identify, journal, led, log, metrics, report,
        serial, store, timer, units, update_lock,
    )

__all__ = [
    "BadGateway", "BadRequest", "Body", "Caller", "Conflict", "Error", "Forbidden", "Headers", "Internal", "Json",
    "Locked", "NotFound", "Request", "Response", "TooLarge", "TooMany", "Unauthorized", "Unavailable",
    "UnsupportedType",
]  # fmt: skip

_FREE = {"config", "log", "timer"}
_CAPABILITIES = {
    "api", "cloud", "dbus", "device", "gpio", "host_name", "http", "i2c", "identify", "journal", "led", "metrics",
    "report", "serial",
    "store", "units", "update_lock",
}  # fmt: skip


def __getattr__(name: str):
    """Imports a capability's module where it is first named: the plugin's world has only those that it asks for."""
    if name not in _FREE | _CAPABILITIES:
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
    try:
        return importlib.import_module(f".{name}", __name__)
    except ImportError as error:
        if name not in _CAPABILITIES or not (error.name or "").startswith("wit_world"):
            raise
        capability = name.replace("_", "-")
        raise ImportError(
            f"the plugin uses `{name}` without asking for it: add `{capability} = \"why\"` to [capabilities] of plugin.toml"
        ) from error
