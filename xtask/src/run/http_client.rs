//! The HTTP client for the cloud, the registry and the device of a run.

use anyhow::{Context as _, Result};
use reqwest::Client;

/// Returns a client. It speaks plain HTTP to programs on this machine, so it trusts no certificate; it needs a provider of
/// cryptography anyway, because other packages, whose features xtask is built with, have it speak TLS.
///
/// # Errors
/// The system has no resources for it.
pub(super) fn http_client() -> Result<Client> {
    // An error means that there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder().tls_certs_only([]).build();
    client.context("failed to create an HTTP client")
}
