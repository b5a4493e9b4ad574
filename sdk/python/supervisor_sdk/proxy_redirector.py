"""The program on the host that sends the device's connections through a proxy: the action `proxy-redirector`, which the
device calls for `PATCH /v1/device/host-config`, and other plugins may call.

A plugin calls it with the capability `proxy-redirector`::

    from supervisor_sdk import proxy_redirector
    from supervisor_sdk.proxy_redirector import Proxy, Redirection

    await proxy_redirector.set(Redirection(Proxy("socks5", "10.0.0.9", 1080)))
    await proxy_redirector.apply()

A provider is a class that `proxy-redirector` in `[provides]` of `plugin.toml` names::

    from supervisor_sdk.proxy_redirector import Direct, Provider, Redirection

    class Redirector(Provider):
        async def get(self):
            return Direct()

        async def set(self, target: Redirection | None): ...
        async def no_proxy(self):
            return ["10.0.0.0/8"]

        async def set_no_proxy(self, addresses: list[str]): ...
        async def apply(self): ...

Each call runs in a fresh instance of the plugin, and runs to its end even if its caller has disconnected. Raise `BadRequest`
if a value cannot be configured; its message names the value. The message of any other error, such as `Unavailable`, says
what could not be read, written or applied.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import Protocol

from .capability import answers, text, whole_number
from .errors import BadRequest, Unavailable

try:
    from wit_world.imports import proxy_redirector as wit
    from wit_world.imports import proxy_types as wit_types
except ImportError:
    # The plugin provides the action, and does not call it.
    wit = wit_types = None

_answers = answers(Unavailable=Unavailable, Invalid=BadRequest)
_KINDS = ("socks4", "socks5", "http-connect", "http-relay")


@dataclass
class Proxy:
    """The proxy that receives the connections."""

    kind: str
    """`socks4`, `socks5`, `http-connect` or `http-relay`."""
    address: str
    """An IPv4 address or a host name."""
    port: int
    """1 to 65535."""
    login: str | None = None
    """Like the password, without control characters."""
    password: str | None = field(default=None, repr=False)
    """Not part of the text of this object."""

    def __post_init__(self):
        if self.kind not in _KINDS:
            raise ValueError(f"{self.kind!r} is not one of {', '.join(_KINDS)}")
        whole_number(self.port, 16)


@dataclass
class DnsRemote:
    """A name server that is queried over TCP, and so through the proxy."""

    address: str
    """An IPv4 address or a host name."""
    port: int
    """1 to 65535."""

    def __post_init__(self):
        whole_number(self.port, 16)


@dataclass
class Redirection:
    """Where connections are sent, and optionally the queries for names."""

    proxy: Proxy
    dns: DnsRemote | None = None


@dataclass
class Direct:
    """Connections are not redirected."""


@dataclass
class Unusable:
    """There is a configuration that names no usable proxy."""

    reason: str
    """What is wrong with it."""


class Provider(Protocol):
    """What a provider does."""

    async def get(self) -> Direct | Unusable | Redirection:
        """Returns the present configuration."""

    async def set(self, target: Redirection | None) -> None:
        """Writes the configuration, or removes it if there is no target, completely or not at all. Keeps other settings as
        long as there is a configuration. Takes effect with `apply`."""

    async def no_proxy(self) -> list[str]:
        """Returns the addresses and subnets that are reached without the proxy."""

    async def set_no_proxy(self, addresses: list[str]) -> None:
        """Replaces these addresses and subnets. Takes effect with `apply`."""

    async def apply(self) -> None:
        """Makes the redirector use what was written. Open connections may stay as they are."""


def _calls_provider(function: Callable) -> Callable:
    """Decorates a function that needs the capability: the module is also for plugins without it."""
    answering = _answers(function)

    @wraps(function)
    async def call(*arguments, **named):
        if wit is None:
            raise ImportError(
                f"the plugin uses `proxy_redirector.{function.__name__}` without asking for it: add `proxy-redirector ="
                ' "why"` to [capabilities] of plugin.toml'
            )
        return await answering(*arguments, **named)

    return call


@_calls_provider
async def get() -> Direct | Unusable | Redirection:
    """Returns the present configuration."""
    return _state_of_wit(await wit.get())


@_calls_provider
async def set(target: Redirection | None) -> None:
    """Writes the configuration, or removes it if there is no target, completely or not at all. Takes effect with `apply`."""
    await wit.set(None if target is None else _redirection_into_wit(target, wit_types))


@_calls_provider
async def no_proxy() -> list[str]:
    """Returns the addresses and subnets that are reached without the proxy."""
    return await wit.no_proxy()


@_calls_provider
async def set_no_proxy(addresses: list[str]) -> None:
    """Replaces these addresses and subnets. Takes effect with `apply`."""
    await wit.set_no_proxy([text(address) for address in addresses])


@_calls_provider
async def apply() -> None:
    """Makes the redirector use what was written. Open connections may stay as they are."""
    await wit.apply()


def _state_of_wit(state) -> Direct | Unusable | Redirection:
    # `ProxyState_Direct` is the class of the case `direct` of `proxy-state`.
    match type(state).__name__.rpartition("_")[2]:
        case "Direct":
            return Direct()
        case "Unusable":
            return Unusable(state.value)
    return _redirection_of_wit(state.value)


def _redirection_of_wit(redirection) -> Redirection | None:
    if redirection is None:
        return None
    proxy, dns = redirection.proxy, redirection.dns
    kind = _KINDS[proxy.kind.value]
    return Redirection(
        Proxy(kind, proxy.address, proxy.port, proxy.login, proxy.password),
        dns and DnsRemote(dns.address, dns.port),
    )


def _state_into_wit(state: Direct | Unusable | Redirection, wit):
    match state:
        case Direct():
            return wit.ProxyState_Direct()
        case Unusable(reason):
            return wit.ProxyState_Unusable(text(reason))
        case Redirection():
            return wit.ProxyState_Redirected(_redirection_into_wit(state, wit))
    raise TypeError(f"`get` returned {type(state).__name__}, which is not `Direct`, `Unusable` or `Redirection`")


def _redirection_into_wit(redirection: Redirection, wit):
    proxy, dns = redirection.proxy, redirection.dns
    login, password = (value and text(value) for value in (proxy.login, proxy.password))
    kind = wit.ProxyKind(_KINDS.index(proxy.kind))
    port = whole_number(proxy.port, 16)
    redirected = wit.Proxy(kind, text(proxy.address), port, login, password)
    return wit.Redirection(redirected, dns and _remote_into_wit(dns, wit))


def _remote_into_wit(dns: DnsRemote, wit):
    return wit.DnsRemote(text(dns.address), whole_number(dns.port, 16))
