//! The HTTP client of the tests.

/// A client. It trusts no certificate: devices speak plain HTTP to it, and to read all certificates of the system takes
/// a test program longer than most requests. A provider of cryptography it needs all the same.
///
/// # Panics
/// Where none can be made.
#[must_use]
pub fn client() -> reqwest::Client {
    // An error says that there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().tls_certs_only([]);
    client.build().expect("a client")
}
