//! Conversion of the types of `wit/proxy-redirector.wit` to and from plain data.

use plugin_protocol as plain;

use crate::bindings::platform::supervisor::proxy_types as wit;

mirror! { enum plain::ProxyKind, wit::ProxyKind { Socks4, Socks5, HttpConnect, HttpRelay } }
mirror! { struct plain::Proxy, wit::Proxy { kind, address, port, login, password } }
mirror! { struct plain::DnsRemote, wit::DnsRemote { address, port } }
mirror! { enum plain::ProxyState, wit::ProxyState { Direct, Unusable(why), Redirected(redirection) } }
mirror! { enum plain::ProxyError, wit::ProxyError { Unavailable(why), Invalid(why), Other(why) } }

impl From<plain::Redirection> for wit::Redirection {
    fn from(plain::Redirection { proxy, dns }: plain::Redirection) -> Self {
        Self {
            proxy: proxy.into(),
            dns: dns.map(Into::into),
        }
    }
}

impl From<wit::Redirection> for plain::Redirection {
    fn from(wit::Redirection { proxy, dns }: wit::Redirection) -> Self {
        Self {
            proxy: proxy.into(),
            dns: dns.map(Into::into),
        }
    }
}
