//! Where the connections of a device go (`wit/proxy-redirector.wit`).

use std::fmt;

use serde::{Deserialize, Serialize};

/// The protocol of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are those of the protocols")]
pub enum ProxyKind {
    Socks4,
    Socks5,
    HttpConnect,
    HttpRelay,
}

/// The proxy that connections are sent to.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proxy {
    /// The protocol.
    pub kind: ProxyKind,
    /// An IPv4 address or a host name.
    pub address: String,
    /// 1 to 65535.
    pub port: u16,
    /// The device's user name at the proxy.
    pub login: Option<String>,
    /// A secret: not shown by [`Debug`](fmt::Debug).
    pub password: Option<String>,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy")
            .field("kind", &self.kind)
            .field("address", &self.address)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

/// A name server that is queried over TCP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DnsRemote {
    /// An IPv4 address or a host name.
    pub address: String,
    /// 1 to 65535.
    pub port: u16,
}

/// The destination of connections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redirection {
    /// The proxy.
    pub proxy: Proxy,
    /// Where name queries go.
    pub dns: Option<DnsRemote>,
}

/// How the device's connections are configured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProxyState {
    /// They are not redirected.
    Direct,
    /// There is a configuration, but it names no usable proxy; the text says what is wrong.
    Unusable(String),
    /// They are sent to this proxy.
    Redirected(Redirection),
}

/// A function of `wit/proxy-redirector.wit`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    missing_docs,
    reason = "the functions of `wit/proxy-redirector.wit`, by their names"
)]
pub enum ProxyCall {
    Get,
    Set(Option<Redirection>),
    NoProxy,
    SetNoProxy(#[serde(with = "crate::bounded_list")] Vec<String>),
    Apply,
}

/// Why the redirector of connections was not read, written or notified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProxyError {
    /// No plugin of this device provides the action.
    Unavailable(String),
    /// A value cannot be configured; the text names it.
    Invalid(String),
    /// The configuration could not be read, written or applied.
    Other(String),
}

impl fmt::Display for ProxyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProxyError::Unavailable(why) | ProxyError::Invalid(why) | ProxyError::Other(why) => {
                f.write_str(why)
            }
        }
    }
}

impl std::error::Error for ProxyError {}
