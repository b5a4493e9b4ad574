//! The types of `wit/proxy-redirector.wit`, to and from plain data.

use plugin_protocol as plain;

use crate::bindings::platform::supervisor::proxy_types::{
    DnsRemote, Proxy, ProxyError, ProxyKind, ProxyState, Redirection,
};

impl From<plain::ProxyKind> for ProxyKind {
    fn from(kind: plain::ProxyKind) -> ProxyKind {
        match kind {
            plain::ProxyKind::Socks4 => ProxyKind::Socks4,
            plain::ProxyKind::Socks5 => ProxyKind::Socks5,
            plain::ProxyKind::HttpConnect => ProxyKind::HttpConnect,
            plain::ProxyKind::HttpRelay => ProxyKind::HttpRelay,
        }
    }
}

impl From<ProxyKind> for plain::ProxyKind {
    fn from(kind: ProxyKind) -> plain::ProxyKind {
        match kind {
            ProxyKind::Socks4 => plain::ProxyKind::Socks4,
            ProxyKind::Socks5 => plain::ProxyKind::Socks5,
            ProxyKind::HttpConnect => plain::ProxyKind::HttpConnect,
            ProxyKind::HttpRelay => plain::ProxyKind::HttpRelay,
        }
    }
}

impl From<plain::Redirection> for Redirection {
    fn from(plain::Redirection { proxy, dns }: plain::Redirection) -> Redirection {
        Redirection {
            proxy: Proxy {
                kind: proxy.kind.into(),
                address: proxy.address,
                port: proxy.port,
                login: proxy.login,
                password: proxy.password,
            },
            dns: dns.map(|plain::DnsRemote { address, port }| DnsRemote { address, port }),
        }
    }
}

impl From<Redirection> for plain::Redirection {
    fn from(Redirection { proxy, dns }: Redirection) -> plain::Redirection {
        plain::Redirection {
            proxy: plain::Proxy {
                kind: proxy.kind.into(),
                address: proxy.address,
                port: proxy.port,
                login: proxy.login,
                password: proxy.password,
            },
            dns: dns.map(|DnsRemote { address, port }| plain::DnsRemote { address, port }),
        }
    }
}

impl From<plain::ProxyState> for ProxyState {
    fn from(state: plain::ProxyState) -> ProxyState {
        match state {
            plain::ProxyState::Direct => ProxyState::Direct,
            plain::ProxyState::Unusable(why) => ProxyState::Unusable(why),
            plain::ProxyState::Redirected(to) => ProxyState::Redirected(to.into()),
        }
    }
}

impl From<ProxyState> for plain::ProxyState {
    fn from(state: ProxyState) -> plain::ProxyState {
        match state {
            ProxyState::Direct => plain::ProxyState::Direct,
            ProxyState::Unusable(why) => plain::ProxyState::Unusable(why),
            ProxyState::Redirected(to) => plain::ProxyState::Redirected(to.into()),
        }
    }
}

impl From<plain::ProxyError> for ProxyError {
    fn from(error: plain::ProxyError) -> ProxyError {
        match error {
            plain::ProxyError::Unavailable(why) => ProxyError::Unavailable(why),
            plain::ProxyError::Invalid(why) => ProxyError::Invalid(why),
            plain::ProxyError::Other(why) => ProxyError::Other(why),
        }
    }
}

impl From<ProxyError> for plain::ProxyError {
    fn from(error: ProxyError) -> plain::ProxyError {
        match error {
            ProxyError::Unavailable(why) => plain::ProxyError::Unavailable(why),
            ProxyError::Invalid(why) => plain::ProxyError::Invalid(why),
            ProxyError::Other(why) => plain::ProxyError::Other(why),
        }
    }
}
