//! Counting requests for whoever makes them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use axum::extract::ConnectInfo;
use http::Extensions;
use http::request::Parts;

use crate::answer::Refusal;
use crate::cloud::Cloud;
use crate::credential::Identity;
use crate::limits::Payer;

impl Cloud {
    /// Counts a request.
    ///
    /// # Errors
    /// 429 where there were too many.
    pub(crate) fn charge(&self, identity: &Identity, parts: &Parts) -> Result<(), Refusal> {
        let payer = match identity.actor() {
            Some(actor) => Payer::Actor(actor),
            None => Payer::Address(address(&parts.extensions)),
        };
        self.limits.request(&payer).map_err(Refusal::TooMany)
    }
}

/// Where a request comes from.
pub(crate) fn address(extensions: &Extensions) -> IpAddr {
    match extensions.get::<ConnectInfo<SocketAddr>>() {
        Some(ConnectInfo(from)) => from.ip(),
        None => Ipv4Addr::UNSPECIFIED.into(),
    }
}
