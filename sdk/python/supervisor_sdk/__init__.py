"""The SDK for plugins of the device supervisor in Python.

A plugin is a `plugin.toml` and a module with one function for each of its routes::

    from supervisor_sdk import NotFound, store

    RAILS = {"5v": 5.1, "3v3": 3.3}

    async def rail(name: str, digits: int = 1):
        if name not in RAILS:
            raise NotFound(f"there is no rail `{name}`")
        await store.update("calls", lambda calls: str(int(calls or 0) + 1))
        return {"rail": name, "volts": round(RAILS[name], digits)}

- **In**: a parameter with the name of one of the route's `:names` receives that value; any other receives the query's
  parameter of the same name. Annotations say what the text is parsed as: `str`, `int`, `float`, `bool`, a `Literal`, an
  `Enum`, or in a query a `list` of one of these. A parameter that is a `dict`, a dataclass or `Json` receives the JSON
  body, or its default if there is no body; one that is `Request`, `Body`, `Headers` or `Caller` receives that. A value
  that does not fit is answered with a 400 that names the parameter, before the function runs. A build refuses other
  types.
- **Out**: text, a `dict`, a `list` or a dataclass (JSON), `bytes`, `None`, a `Response`, or a generator, whose pieces
  are streamed.
- **Errors**: `raise NotFound(...)` and similar errors are answered in the format that all errors of the device have,
  also in a generator before its first piece. An error after that closes the connection, so the caller sees that the
  answer is incomplete.
- **Actions**: a function that `[actions]` names takes the input of its caller, another plugin: `bytes`, or JSON as the
  annotation says. It returns `bytes`, or anything that JSON can express, and an error is for the caller.
- **Capabilities**: the modules `store`, `led`, `units` and so on need a line in `[capabilities]` of `plugin.toml`;
  `log`, `config`, `timer` and `Caller` do not.

The build imports the plugin, and each call runs in a fresh instance that begins where the import ended: variables have
the values that they had then, whatever another call did to them, and a module that was not imported by then cannot be
imported any more. What a plugin prints goes to the log. `random`, `secrets`, `uuid` and `os.urandom` need the capability
`random`: without it they would return the same in every call, and raise an error.
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
        actions, api, cloud, config, dbus, device, files, gpio, host_name, http, i2c, identify, identify_window, journal,
        led, log, metrics, proxy_redirector, report, serial, store, timer, units, update_lock,
    )

__all__ = [
    "BadGateway", "BadRequest", "Body", "Caller", "Conflict", "Error", "Forbidden", "Headers", "Internal", "Json",
    "Locked", "NotFound", "Request", "Response", "TooLarge", "TooMany", "Unauthorized", "Unavailable",
    "UnsupportedType",
]  # fmt: skip

_FREE = {"config", "log", "timer"}
_CAPABILITIES = {
    "actions", "api", "cloud", "dbus", "device", "files", "gpio", "host_name", "http", "i2c", "identify", "journal",
    "led", "metrics", "proxy_redirector", "report", "serial", "store", "units", "update_lock",
}  # fmt: skip


_OF_PROVIDERS = {"identify_window": "identify"}
"""Modules that need a line in `[provides]`, for the action."""


def __getattr__(name: str):
    """Imports a capability's module at its first use: the plugin's world has only the capabilities that it requests."""
    if name not in _FREE | _CAPABILITIES | _OF_PROVIDERS.keys():
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
    try:
        return importlib.import_module(f".{name}", __name__)
    except ImportError as error:
        if name in _FREE or not (error.name or "").startswith("wit_world"):
            raise
        if action := _OF_PROVIDERS.get(name):
            problem = f"providing `{action}`: add `{action} = \"FUNCTION\"` to [provides] of plugin.toml"
        else:
            problem = f"asking for it: add `{name.replace('_', '-')} = \"why\"` to [capabilities] of plugin.toml"
        raise ImportError(f"the plugin uses `{name}` without {problem}") from error
