//! The HTTP clients for the cloud: which certificates they trust, how long they wait, and which connections they keep.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::HeaderValue;
use parking_lot::Mutex;
use reqwest::redirect::{Attempt, Policy};

use super::{CloudError, unreachable};
use crate::identity::Identity;

/// The most redirects that are followed.
const REDIRECTS: usize = 3;
/// How long a lasting connection may take to be established.
pub(super) const CONNECT_WITHIN: Duration = Duration::from_secs(59);
/// How long the other end of a lasting connection may leave data unacknowledged.
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// Returns the User-Agent of this device (docs/spec/device.md#user-agent):
/// `Supervisor/19.0.0 (Linux; Some OS 1.2; prod)`, without the unknown parts.
#[must_use]
pub fn user_agent(api_level: &str, os: Option<&str>, variant: Option<&str>) -> String {
    let parts = [Some("Linux"), os, variant].into_iter().flatten();
    let plain = |text: &str| -> String {
        let allowed = |c: &char| matches!(c, ' '..='~') && !matches!(c, '(' | ')' | ';');
        text.chars().filter(allowed).collect()
    };
    let parts: Vec<String> = parts.map(plain).filter(|part| !part.is_empty()).collect();
    format!("Supervisor/{api_level} ({})", parts.join("; "))
}

/// The connections to one cloud. A device has its own; simulated devices share them, since a pool and the trusted roots
/// are most of the memory that a device needs here.
pub struct Connections {
    agent: HeaderValue,
    /// Whether the cloud's address has TLS.
    tls: bool,
    /// PEM: authorities that are trusted in addition to the system's.
    authorities: Option<Vec<u8>>,
    /// How many idle connections are kept.
    idle: usize,
    /// The client and the time limit that it was created with, which a target can change.
    http: Mutex<Option<(Duration, reqwest::Client)>>,
    /// The client for lasting requests, which are silent while there is nothing to send.
    lasting: OnceLock<reqwest::Client>,
}

impl Connections {
    /// Connects to nothing yet. Trusts the authorities of `identity`; `agent` is the result of [`user_agent`].
    #[must_use]
    pub fn new(identity: &Identity, agent: &str) -> Connections {
        Connections {
            agent: HeaderValue::from_str(agent)
                .unwrap_or_else(|_| HeaderValue::from_static("Supervisor")),
            tls: identity.endpoint.starts_with("https:"),
            authorities: identity.authorities.clone(),
            idle: 1,
            http: Mutex::default(),
            lasting: OnceLock::new(),
        }
    }

    /// Sets how many idle connections are kept, instead of one.
    #[must_use]
    pub fn with_idle(mut self, idle: usize) -> Connections {
        self.idle = idle;
        self
    }

    pub(super) fn lasting(&self) -> Result<reqwest::Client, CloudError> {
        if let Some(client) = self.lasting.get() {
            return Ok(client.clone());
        }
        let builder = self.builder(CONNECT_WITHIN).map_err(unreachable)?;
        // Unacknowledged data shows that nobody is there, long before the kernel would notice.
        let builder = builder
            .tcp_user_timeout(UNACKNOWLEDGED)
            .tcp_keepalive(UNACKNOWLEDGED);
        let client = builder.build().map_err(unreachable)?;
        Ok(self.lasting.get_or_init(|| client).clone())
    }

    pub(super) fn http(&self, limit: Duration) -> Result<reqwest::Client, CloudError> {
        let mut cached = self.http.lock();
        if let Some((of, client)) = cached.as_ref()
            && *of == limit
        {
            return Ok(client.clone());
        }
        let client = self.make(limit).map_err(unreachable)?;
        *cached = Some((limit, client.clone()));
        Ok(client)
    }

    fn make(&self, limit: Duration) -> reqwest::Result<reqwest::Client> {
        self.builder(limit)?.read_timeout(limit).build()
    }

    fn builder(&self, limit: Duration) -> reqwest::Result<reqwest::ClientBuilder> {
        // A second installation is refused, and the first one stays in use.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .user_agent(self.agent.clone())
            .dns_resolver(Arc::new(names::system()))
            .connect_timeout(limit)
            .redirect(Policy::custom(follow))
            .pool_max_idle_per_host(self.idle)
            // Unpacked by our own code, with a limit.
            .no_gzip();
        if !self.tls {
            // Without the machine's certificates, which would not be used.
            builder = builder.tls_certs_only([]);
        } else if let Some(pem) = &self.authorities {
            builder = builder.tls_certs_merge(reqwest::Certificate::from_pem_bundle(pem)?);
        }
        Ok(builder)
    }
}

/// Decides whether to follow a redirect: never from TLS to an address without.
fn follow(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let loses_tls = attempt.url().scheme() != "https"
        && attempt.previous().iter().any(|url| url.scheme() == "https");
    if loses_tls {
        return attempt.error("it redirects to an address without TLS");
    }
    if attempt.previous().len() > REDIRECTS {
        return attempt.error("it redirects too often");
    }
    attempt.follow()
}
