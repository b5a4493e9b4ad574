//! Whom requests are counted for.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use axum::extract::ConnectInfo;
use http::Extensions;
use http::request::Parts;

use crate::credential::Identity;
use crate::limits::{Network, RateLimitKey};

/// Returns whom a request is counted for.
pub fn payer(identity: &Identity, parts: &Parts) -> RateLimitKey {
    match identity.actor() {
        Some(actor) => RateLimitKey::Actor(actor),
        None => RateLimitKey::Network(Network::from_address(address(&parts.extensions))),
    }
}

/// Returns the address that a request comes from.
pub fn address(extensions: &Extensions) -> IpAddr {
    match extensions.get::<ConnectInfo<SocketAddr>>() {
        Some(ConnectInfo(from)) => from.ip(),
        None => Ipv4Addr::UNSPECIFIED.into(),
    }
}
