from dataclasses import dataclass
from enum import Enum


class ProxyKind(Enum):
    SOCKS4 = 0
    SOCKS5 = 1
    HTTP_CONNECT = 2
    HTTP_RELAY = 3


@dataclass
class Proxy:
    kind: ProxyKind
    address: str
    port: int
    login: str | None
    password: str | None


@dataclass
class DnsRemote:
    address: str
    port: int


@dataclass
class Redirection:
    proxy: Proxy
    dns: DnsRemote | None


@dataclass
class ProxyState_Direct:
    pass


@dataclass
class ProxyState_Unusable:
    value: str


@dataclass
class ProxyState_Redirected:
    value: Redirection


ProxyState = ProxyState_Direct | ProxyState_Unusable | ProxyState_Redirected


@dataclass
class ProxyError_Unavailable:
    value: str


@dataclass
class ProxyError_Invalid:
    value: str


@dataclass
class ProxyError_Other:
    value: str
