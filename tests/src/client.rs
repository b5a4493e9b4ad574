//! The HTTP client of the tests.

/// Returns a client. It trusts no certificate: it speaks plain HTTP to devices, and reading all certificates of the
/// system takes a test program longer than most requests. It needs a provider of cryptography anyway.
///
/// # Panics
/// If it cannot be created.
#[must_use]
pub fn client() -> reqwest::Client {
    // An error means that there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().tls_certs_only([]);
    client.build().expect("a client")
}
