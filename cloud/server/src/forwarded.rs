//! Proxies in front of the cloud: the callers that they forward, and callers that bypass them
//! (docs/spec/cloud.md#http-proxies).

use std::net::{IpAddr, SocketAddr};

use axum::extract::{ConnectInfo, Request};
use axum::response::{IntoResponse, Response};
use cloud_core::configuration::Configuration;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use ipnet::IpNet;

const FORWARDED_FOR: &str = "x-forwarded-for";

/// A browser that has used an encrypted address uses no other for a year.
const ENCRYPTED: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// Tells browsers to use only encrypted addresses, if the public address is encrypted.
pub(crate) fn keep_encrypted(configuration: &Configuration, response: &mut Response) {
    if is_encrypted(configuration.public_url.as_deref()) {
        let headers = response.headers_mut();
        headers.insert(header::STRICT_TRANSPORT_SECURITY, ENCRYPTED);
    }
}

fn is_encrypted(url: Option<&str>) -> bool {
    url.is_some_and(|url| url.starts_with("https://"))
}

/// Replaces a trusted proxy's address with the one that it forwards for, so that limits and the log apply to callers
/// rather than the proxy. Callers that bypass the proxies are redirected to the public address, if that is encrypted.
pub(crate) fn look(configuration: &Configuration, request: &mut Request) -> Option<Response> {
    let trusted = &configuration.trusted_proxies;
    if trusted.is_empty() {
        return None;
    }
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let ConnectInfo(peer) = *peer?;
    if is_trusted(trusted, peer.ip()) {
        let caller = caller(trusted, peer, request.headers());
        request.extensions_mut().insert(ConnectInfo(caller));
        return None;
    }
    let url = configuration.public_url.as_deref();
    // Load balancers send these requests directly.
    let is_health = matches!(
        request.uri().path(),
        "/ping" | "/health" | "/health/live" | "/health/ready"
    );
    let url = url.filter(|url| is_encrypted(Some(*url)) && !is_health)?;
    let path = request.uri().path_and_query();
    let path = path.map_or("/", |path| path.as_str());
    let location = [(header::LOCATION, format!("{url}{path}"))];
    Some((StatusCode::MOVED_PERMANENTLY, location).into_response())
}

pub(crate) fn is_trusted(trusted: &[IpNet], address: IpAddr) -> bool {
    let address = address.to_canonical();
    trusted.iter().any(|network| network.contains(&address))
}

/// Returns the last address that is not a trusted proxy's: anybody may have written the ones before it. A port belongs
/// to that proxy's connection and is meaningless.
fn caller(trusted: &[IpNet], peer: SocketAddr, headers: &HeaderMap) -> SocketAddr {
    let lists = headers.get_all(FORWARDED_FOR).iter().rev();
    let mut caller = peer;
    for list in lists {
        let Ok(list) = list.to_str() else {
            return caller;
        };
        for address in list.rsplit(',') {
            let Some(address) = written(address.trim()) else {
                return caller;
            };
            caller = SocketAddr::new(address, 0);
            if !is_trusted(trusted, address) {
                return caller;
            }
        }
    }
    caller
}

/// Parses an address as written by proxies, some of which add a port.
fn written(text: &str) -> Option<IpAddr> {
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    let bracketed = || text.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    let address = text.parse().ok().or_else(with_port).or_else(bracketed)?;
    Some(address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caller_is_the_last_address_that_is_no_trusted_proxys() {
        let trusted: Vec<IpNet> = vec![
            "10.0.0.0/8".parse().expect("a network"),
            "fd00::/8".parse().expect("a network"),
        ];
        let peer: SocketAddr = "10.0.0.1:4000".parse().expect("an address");
        for (lists, expected) in [
            (&[][..], "10.0.0.1"),
            (&["192.0.2.7"], "192.0.2.7"),
            (&["1.2.3.4, 192.0.2.7, 10.1.1.1"], "192.0.2.7"),
            (&["1.2.3.4", "192.0.2.7,10.1.1.1"], "192.0.2.7"),
            (&["192.0.2.7:5123"], "192.0.2.7"),
            (&["2001:db8::1, fd00::2"], "2001:db8::1"),
            (&["[2001:db8::1]:80"], "2001:db8::1"),
            (&["[2001:db8::1]"], "2001:db8::1"),
            (&["::ffff:192.0.2.7"], "192.0.2.7"),
            (&["10.2.2.2"], "10.2.2.2"),
            (&["unknown"], "10.0.0.1"),
            (&["192.0.2.7, nonsense, 10.1.1.1"], "10.1.1.1"),
            (&[""], "10.0.0.1"),
        ] {
            let mut headers = HeaderMap::new();
            for list in lists {
                headers.append(FORWARDED_FOR, list.parse().expect("a value"));
            }
            let found = caller(&trusted, peer, &headers).ip();
            assert_eq!(found.to_string(), expected, "{lists:?}");
        }
    }
}
