//! The HTTP client of the tests.

/// A client. It needs no TLS, but a build of the whole workspace gives reqwest the engine's TLS without
/// a provider, and then a client cannot even be made without one.
#[must_use]
pub fn client() -> reqwest::Client {
    // An error says that there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::new()
}
