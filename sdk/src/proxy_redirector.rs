//! The action behind the proxy settings of `PATCH /v1/device/host-config`, for the program on the host
//! that sends the device's connections through a proxy.
//!
//! **To provide it**: a type that implements [`Provider`], named as `proxy_redirector` in
//! [`crate::plugin!`]. Each call runs in a fresh instance, and runs to its end even if its caller is gone.
//!
//! **To call it**: the functions here, with the capability `proxy_redirector`. The device decides which
//! plugin provides it, and with which program.

use std::fmt;

use crate::bindings::capabilities::platform::supervisor::proxy_redirector as calls;
use crate::bindings::capabilities::platform::supervisor::proxy_types as wit;
use crate::capability_error::capability_error;

pub mod check;
#[doc(hidden)]
pub mod provide;

/// What a plugin implements to provide the action.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not provide the action `proxy-redirector`",
    note = "implement `supervisor_sdk::proxy_redirector::Provider` for `{Self}`"
)]
pub trait Provider {
    /// Returns the present configuration.
    ///
    /// # Errors
    /// [`Error::Failed`] if that cannot be read.
    fn get() -> impl Future<Output = Result<State, Error>>;

    /// Writes the configuration, or removes it, completely or not at all. Settings that are not part of a
    /// [`Redirection`] are kept as long as there is a configuration.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a value cannot be configured; then nothing has been written.
    fn set(target: Option<Redirection>) -> impl Future<Output = Result<(), Error>>;

    /// Returns the addresses and subnets that are reached without the proxy.
    ///
    /// # Errors
    /// [`Error::Failed`] if they cannot be read.
    fn no_proxy() -> impl Future<Output = Result<Vec<String>, Error>>;

    /// Replaces the addresses and subnets that are reached without the proxy.
    ///
    /// # Errors
    /// [`Error::Invalid`] if one is not an address; then nothing has been written.
    fn set_no_proxy(addresses: Vec<String>) -> impl Future<Output = Result<(), Error>>;

    /// Makes the redirector apply the written configuration.
    ///
    /// # Errors
    /// [`Error::Failed`] if it fails to.
    fn apply() -> impl Future<Output = Result<(), Error>>;
}

/// Returns the present configuration.
///
/// # Errors
/// [`Error::Unavailable`] if no plugin provides the action; [`Error::Failed`].
pub async fn get() -> Result<State, Error> {
    Ok(calls::get().await?.into())
}

/// Writes the configuration, or removes it. Takes effect with [`apply`].
///
/// # Errors
/// All of [`Error`].
pub async fn set(target: Option<Redirection>) -> Result<(), Error> {
    Ok(calls::set(target.map(Into::into)).await?)
}

/// Returns the addresses and subnets that are reached without the proxy.
///
/// # Errors
/// [`Error::Unavailable`] if no plugin provides the action; [`Error::Failed`].
pub async fn no_proxy() -> Result<Vec<String>, Error> {
    Ok(calls::no_proxy().await?)
}

/// Replaces the addresses and subnets that are reached without the proxy. Takes effect with [`apply`].
///
/// # Errors
/// All of [`Error`].
pub async fn set_no_proxy(addresses: Vec<String>) -> Result<(), Error> {
    Ok(calls::set_no_proxy(addresses).await?)
}

/// Makes the redirector apply the written configuration. Open connections may stay as they are.
///
/// # Errors
/// [`Error::Unavailable`] if no plugin provides the action; [`Error::Failed`].
pub async fn apply() -> Result<(), Error> {
    Ok(calls::apply().await?)
}

/// The configuration of a device's proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Connections are not redirected.
    Direct,
    /// There is a configuration, but it names no usable proxy; the text says what is wrong.
    Unusable(String),
    /// Connections are redirected.
    Redirected(Redirection),
}

/// A proxy to which connections are redirected, and how names are resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirection {
    /// The proxy.
    pub proxy: Proxy,
    /// The name server that is queried through the proxy, if names are resolved that way.
    pub dns: Option<DnsRemote>,
}

/// The proxy that receives the connections.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    /// The proxy's protocol.
    pub kind: ProxyKind,
    /// Its address: an IPv4 address or a host name.
    pub address: String,
    /// Its port, 1 to 65535.
    pub port: u16,
    /// The login; like the password, without control characters.
    pub login: Option<String>,
    /// The password, which `Debug` does not show.
    pub password: Option<String>,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy")
            .field("kind", &self.kind)
            .field("address", &self.address)
            .field("port", &self.port)
            .field("login", &self.login)
            .field("password", &self.password.as_ref().map(|_| "(hidden)"))
            .finish()
    }
}

/// The protocol of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyKind {
    /// SOCKS 4.
    Socks4,
    /// SOCKS 5.
    Socks5,
    /// The method CONNECT of HTTP.
    HttpConnect,
    /// Relaying only of HTTP requests, with absolute addresses.
    HttpRelay,
}

impl ProxyKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [
        Self::Socks4,
        Self::Socks5,
        Self::HttpConnect,
        Self::HttpRelay,
    ];

    /// Returns the kind's name in the device API.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Socks4 => "socks4",
            Self::Socks5 => "socks5",
            Self::HttpConnect => "http-connect",
            Self::HttpRelay => "http-relay",
        }
    }

    /// Returns the kind with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A name server that is queried over TCP, and so through the proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DnsRemote {
    /// Its address: an IPv4 address or a host name.
    pub address: String,
    /// Its port, 1 to 65535.
    pub port: u16,
}

impl fmt::Display for DnsRemote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.address, self.port)
    }
}

capability_error! {
    /// The reason why the action failed.
    ///
    /// As a [`crate::Error`]: 503, 400 or 500.
    wit::ProxyError {
        /// No plugin of this device provides the action.
        Unavailable from Unavailable answers unavailable,
        /// A value cannot be configured; the text names it. Nothing has been written.
        Invalid from Invalid answers bad_request,
        /// The configuration could not be read, written or applied.
        Failed from Other answers internal,
    }
}

impl From<Error> for wit::ProxyError {
    fn from(error: Error) -> Self {
        match error {
            Error::Unavailable(text) => Self::Unavailable(text),
            Error::Invalid(text) => Self::Invalid(text),
            Error::Failed(text) => Self::Other(text),
        }
    }
}

mirror! { enum wit::ProxyState, State { Direct, Unusable(why), Redirected(redirection) } }
mirror! { enum wit::ProxyKind, ProxyKind { Socks4, Socks5, HttpConnect, HttpRelay } }
mirror! { struct wit::Proxy, Proxy { kind, address, port, login, password } }
mirror! { struct wit::DnsRemote, DnsRemote { address, port } }

impl From<wit::Redirection> for Redirection {
    fn from(wit::Redirection { proxy, dns }: wit::Redirection) -> Self {
        Self {
            proxy: proxy.into(),
            dns: dns.map(Into::into),
        }
    }
}

impl From<Redirection> for wit::Redirection {
    fn from(Redirection { proxy, dns }: Redirection) -> Self {
        Self {
            proxy: proxy.into(),
            dns: dns.map(Into::into),
        }
    }
}
