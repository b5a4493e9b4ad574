//! The destination and the origin that a request states: `Host` and `Origin`. The device's API and `supervisor-plugin run`
//! check them.
//!
//! A page in a browser can make its own name resolve to an address of the device (DNS rebinding), or send a form to it.
//! Such requests carry the page's name in `Host` or `Origin`, and are refused whatever they ask for and whatever key
//! they have. Genuine clients call the device by an address or by one of its own names.

#![warn(missing_docs)]

use std::net::{Ipv4Addr, Ipv6Addr};

use http::Uri;
use http::header::{HOST, HeaderMap, ORIGIN};

/// Why a request may be one of another site.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ForeignSite {
    /// It was sent to this name.
    #[error("`{0}` is not a name of this device")]
    Name(String),
    /// It is of a page of another site.
    #[error("pages of other sites may not send requests to this device")]
    Origin,
    /// It does not state clearly where it was sent to.
    #[error("the request names several hosts, or one that cannot be read")]
    Contradiction,
}

/// Refuses requests that a page of another site sends. `names` are the device's own, in lower case; `localhost` and
/// addresses are accepted without them.
///
/// # Errors
/// The reason, for people.
pub fn check(
    uri: &Uri,
    headers: &HeaderMap,
    names: impl FnOnce() -> Vec<String>,
) -> Result<(), ForeignSite> {
    let Some(host) = called_host(uri, headers)? else {
        // A client of HTTP/1.0, so not a browser.
        return if headers.contains_key(ORIGIN) {
            Err(ForeignSite::Origin)
        } else {
            Ok(())
        };
    };
    if !is_address(host) && !is_own(&name_of(host), names) {
        return Err(ForeignSite::Name(name_of(host)));
    }
    let mut origins = headers.get_all(ORIGIN).iter();
    let is_same = |origin: &http::HeaderValue| {
        let origin = origin.to_str().unwrap_or_default();
        let parts = origin.split_at_checked("http://".len());
        parts.is_some_and(|(scheme, of)| {
            scheme.eq_ignore_ascii_case("http://") && of.eq_ignore_ascii_case(host)
        })
    };
    if origins.all(is_same) {
        Ok(())
    } else {
        Err(ForeignSite::Origin)
    }
}

/// Returns the host that the client called, with the port if it named one: `Host`, which must agree with the target if
/// that is a complete URI.
fn called_host<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Result<Option<&'a str>, ForeignSite> {
    let mut hosts = headers.get_all(HOST).iter();
    let of_header = hosts.next();
    if hosts.next().is_some() {
        return Err(ForeignSite::Contradiction);
    }
    let of_header = match of_header {
        Some(value) => Some(value.to_str().map_err(|_| ForeignSite::Contradiction)?),
        None => None,
    };
    match (uri.authority(), of_header) {
        (Some(target), Some(host)) if !target.as_str().eq_ignore_ascii_case(host) => {
            Err(ForeignSite::Contradiction)
        }
        (Some(target), _) => Ok(Some(target.as_str())),
        (None, host) => Ok(host),
    }
}

/// Returns whether it is an address, with or without a port.
fn is_address(host: &str) -> bool {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split_once(']').is_some_and(|(address, port)| {
            address.parse::<Ipv6Addr>().is_ok() && (port.is_empty() || is_port(port))
        });
    }
    let (address, port) = host.split_at(host.find(':').unwrap_or(host.len()));
    address.parse::<Ipv4Addr>().is_ok() && (port.is_empty() || is_port(port))
}

fn is_port(text: &str) -> bool {
    text.strip_prefix(':')
        .is_some_and(|digits| digits.parse::<u16>().is_ok())
}

/// Returns the name in lower case, without the port and the trailing dot.
fn name_of(host: &str) -> String {
    let name = host.split_once(':').map_or(host, |(name, _)| name);
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

/// Returns whether a name is the device's own. Each name also stands for its `.local` form, which is used in networks
/// without a name server.
fn is_own(name: &str, names: impl FnOnce() -> Vec<String>) -> bool {
    if name == "localhost" {
        return true;
    }
    let bare = name.strip_suffix(".local");
    names()
        .iter()
        .any(|own| own == name || bare.is_some_and(|bare| own == bare))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(target: &str, headers: &[(&str, &str)]) -> u16 {
        let mut request = http::Request::builder().uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(()).unwrap();
        let names = || {
            vec![
                "board".to_owned(),
                "0123abc".to_owned(),
                "device.example.com".to_owned(),
            ]
        };
        match check(request.uri(), request.headers(), names) {
            Ok(()) => 200,
            Err(_) => 403,
        }
    }

    #[test]
    fn a_device_is_called_by_an_address_or_a_name_of_its_own() {
        for (host, expected) in [
            ("127.0.0.1", 200),
            ("127.0.0.1:48484", 200),
            ("10.114.104.1:48484", 200),
            ("[::1]", 200),
            ("[fe80::1]:48484", 200),
            ("localhost", 200),
            ("LocalHost:48484", 200),
            ("board", 200),
            ("board.local:48484", 200),
            ("BOARD.local.", 200),
            ("0123abc.local:48484", 200),
            ("device.example.com", 200),
            ("evil.example", 403),
            ("evil.example:48484", 403),
            ("localhost.evil.example", 403),
            ("evil.localhost", 403),
            ("board.evil.example", 403),
            ("board.local.evil.example", 403),
            ("evil.local", 403),
            ("127.0.0.1.evil.example", 403),
            ("127.0.0.1:evil", 403),
            ("2130706433", 403),
            ("[::1].evil.example", 403),
            ("[::1", 403),
            ("user@127.0.0.1", 403),
            ("", 403),
        ] {
            assert_eq!(status("/ping", &[("host", host)]), expected, "{host}");
        }
        // Without one, like a client of HTTP/1.0.
        assert_eq!(status("/ping", &[]), 200);
    }

    #[test]
    fn a_target_with_a_host_has_to_agree() {
        for (target, host, expected) in [
            ("http://127.0.0.1:1/ping", "127.0.0.1:1", 200),
            ("http://evil.example/ping", "evil.example", 403),
            ("http://evil.example/ping", "127.0.0.1", 403),
            ("http://127.0.0.1/ping", "evil.example", 403),
        ] {
            assert_eq!(
                status(target, &[("host", host)]),
                expected,
                "{target} {host}"
            );
        }
        let two = [("host", "127.0.0.1"), ("host", "127.0.0.1")];
        assert_eq!(status("/ping", &two), 403);
    }

    #[test]
    fn pages_of_other_sites_are_refused() {
        let host = ("host", "127.0.0.1:48484");
        for (origin, expected) in [
            ("http://127.0.0.1:48484", 200),
            ("HTTP://127.0.0.1:48484", 200),
            ("http://127.0.0.1", 403),
            ("http://127.0.0.1:80", 403),
            ("https://127.0.0.1:48484", 403),
            ("http://evil.example", 403),
            ("null", 403),
            ("", 403),
        ] {
            assert_eq!(
                status("/ping", &[host, ("origin", origin)]),
                expected,
                "{origin}"
            );
        }
        let two = [
            host,
            ("origin", "http://127.0.0.1:48484"),
            ("origin", "null"),
        ];
        assert_eq!(status("/ping", &two), 403);
        assert_eq!(
            status("/ping", &[("origin", "http://127.0.0.1:48484")]),
            403
        );
    }
}
