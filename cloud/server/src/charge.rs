//! Counting requests for whoever makes them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use axum::extract::ConnectInfo;
use http::Extensions;
use http::request::Parts;

use crate::answer::Refusal;
use crate::cloud::Cloud;
use crate::credential::{Credential, Identity};
use crate::limits::{Network, Payer};

impl Cloud {
    /// Who makes a request, which is counted: for its actor, or for its network where it has no credential or a
    /// bad one.
    ///
    /// # Errors
    /// 401 and 429.
    pub(crate) async fn admit(&self, parts: &Parts) -> Result<Identity, Refusal> {
        let identity = self.identify(&parts.headers, parts.uri.query()).await;
        self.count(identity, parts)
    }

    /// Counts a request whose credential was looked at; a refused one counts as an answered one does.
    ///
    /// # Errors
    /// 429 where there were too many; otherwise the refusal itself.
    pub(crate) fn count(
        &self,
        identity: Result<Identity, Refusal>,
        parts: &Parts,
    ) -> Result<Identity, Refusal> {
        match &identity {
            Ok(identity) => self.charge(identity, parts)?,
            Err(_) => self.charge(&Identity::guest(), parts)?,
        }
        identity
    }

    /// Counts a request.
    ///
    /// # Errors
    /// 429 where there were too many.
    pub(crate) fn charge(&self, identity: &Identity, parts: &Parts) -> Result<(), Refusal> {
        let payer = payer(identity, parts);
        self.limits.request(&payer).map_err(Refusal::TooMany)
    }
}

/// Whom a request is counted for.
pub(crate) fn payer(identity: &Identity, parts: &Parts) -> Payer {
    match identity.actor() {
        Some(actor) => Payer::Actor(actor),
        None => Payer::Network(Network::of(address(&parts.extensions))),
    }
}

/// Bytes of a body of whoever has no credential: nobody is known to answer for more.
const BODY_OF_A_GUEST: usize = 64 << 10;

impl Cloud {
    /// Bytes that the body of a request other than the data API's may have.
    pub(crate) fn longest_body(&self, identity: &Identity) -> usize {
        let most = self.configuration.limits.body;
        match identity.credential {
            Credential::Nothing => most.min(BODY_OF_A_GUEST),
            Credential::Session(_) | Credential::Key(_) | Credential::TunnelServer => most,
        }
    }
}

/// Where a request comes from.
pub(crate) fn address(extensions: &Extensions) -> IpAddr {
    match extensions.get::<ConnectInfo<SocketAddr>>() {
        Some(ConnectInfo(from)) => from.ip(),
        None => Ipv4Addr::UNSPECIFIED.into(),
    }
}
