//! The hosts and ports that the policy lets a plugin send requests to.
//!
//! `api.acme.example` is that host over TLS, on port 443; `https://api.acme.example:8443` uses another port, and
//! `http://192.168.1.20` is without TLS, on port 80. `*.acme.example` is all hosts below that one.

use std::fmt;
use std::net::IpAddr;

use http::Uri;
use http::uri::Scheme;
use serde::{Deserialize, Deserializer};

/// Hosts and ports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct HttpGrants(Vec<HttpGrant>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct HttpGrant {
    is_tls: bool,
    /// In lower case; without the `*.` for all hosts below it.
    host: String,
    with_subdomains: bool,
    port: u16,
}

/// The destination of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Destination {
    is_tls: bool,
    host: String,
    port: u16,
}

/// What the policy allows for a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DestinationGrant {
    /// Nothing.
    Nowhere,
    /// It names the host: its name may resolve to any address but the device's own.
    ByName,
    /// It names this address, or the device itself.
    ByAddress,
}

impl HttpGrants {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn find_grant(&self, destination: &Destination) -> DestinationGrant {
        let mut grants = self.0.iter();
        match grants.find(|grant| grant.covers(destination)) {
            None => DestinationGrant::Nowhere,
            Some(_) if destination.is_address() || destination.host == "localhost" => {
                DestinationGrant::ByAddress
            }
            Some(_) => DestinationGrant::ByName,
        }
    }
}

impl HttpGrant {
    fn covers(&self, destination: &Destination) -> bool {
        let host = &destination.host;
        let is_below = || {
            let above = host.strip_suffix(&self.host);
            above.is_some_and(|above| above.len() > 1 && above.ends_with('.'))
        };
        self.is_tls == destination.is_tls
            && self.port == destination.port
            && if self.with_subdomains {
                !destination.is_address() && is_below()
            } else {
                *host == self.host
            }
    }

    fn parse(text: &str) -> Option<HttpGrant> {
        let (scheme, authority) = text.split_once("://").unwrap_or(("https", text));
        let (with_subdomains, authority) = match authority.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, authority),
        };
        if authority.contains(['/', '?', '#', '@', '*', ' ']) {
            return None;
        }
        let uri: Uri = format!("{scheme}://{authority}/").parse().ok()?;
        let Destination { is_tls, host, port } = Destination::from_uri(&uri)?;
        Some(HttpGrant {
            is_tls,
            host,
            with_subdomains,
            port,
        })
    }
}

impl Destination {
    /// Returns `None` for anything that is not an absolute HTTP address, or contains a user.
    pub(crate) fn from_uri(uri: &Uri) -> Option<Destination> {
        let scheme = uri.scheme()?;
        let is_tls = match scheme {
            scheme if *scheme == Scheme::HTTPS => true,
            scheme if *scheme == Scheme::HTTP => false,
            _ => return None,
        };
        let authority = uri.authority()?;
        let host = authority.host();
        if authority.as_str().contains('@') || host.is_empty() {
            return None;
        }
        let port = match authority.port() {
            Some(port) => port.as_u16(),
            // The port is empty, or too large.
            None if authority.as_str() != host => return None,
            None if is_tls => 443,
            None => 80,
        };
        // Normalize the name: `a.example.` is `a.example`.
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        (!host.is_empty()).then_some(Destination { is_tls, host, port })
    }

    fn is_address(&self) -> bool {
        let inner = self.host.trim_start_matches('[').trim_end_matches(']');
        inner.parse::<IpAddr>().is_ok()
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "https" } else { "http" };
        write!(f, "{scheme}://{}:{}", self.host, self.port)
    }
}

impl<'de> Deserialize<'de> for HttpGrants {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let texts = Vec::<String>::deserialize(deserializer)?;
        let grants = texts.iter().map(|text| {
            HttpGrant::parse(text).ok_or_else(|| {
                serde::de::Error::custom(format!(
                    "`{text}` is not a host that plugins can reach: write `api.acme.example`, `*.acme.example`, \
                     `https://api.acme.example:8443` or `http://192.168.1.20`"
                ))
            })
        });
        Ok(HttpGrants(grants.collect::<Result<_, _>>()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grants(texts: &[&str]) -> HttpGrants {
        let list: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
        let table: toml::Table = format!("http = [{}]", list.join(", ")).parse().unwrap();
        table["http"].clone().try_into().unwrap()
    }

    fn find_grant(grants: &HttpGrants, url: &str) -> Option<DestinationGrant> {
        Some(grants.find_grant(&Destination::from_uri(&url.parse().ok()?)?))
    }

    #[test]
    fn a_plugin_reaches_the_hosts_that_the_policy_names_and_no_others() {
        let grants = grants(&[
            "api.acme.example",
            "*.acme.test",
            "https://other.example:8443",
            "http://192.168.1.20",
            "http://[::1]:9000",
            "http://localhost:8080",
            "http://*.1.20",
        ]);
        for (url, expected) in [
            ("https://api.acme.example/x?y", DestinationGrant::ByName),
            ("https://API.acme.example./x", DestinationGrant::ByName),
            ("https://api.acme.example:443/x", DestinationGrant::ByName),
            ("https://api.acme.example:444/x", DestinationGrant::Nowhere),
            ("http://api.acme.example/x", DestinationGrant::Nowhere),
            ("http://api.acme.example:443/x", DestinationGrant::Nowhere),
            ("https://evil-api.acme.example/", DestinationGrant::Nowhere),
            (
                "https://api.acme.example.evil.example/",
                DestinationGrant::Nowhere,
            ),
            ("https://a.b.acme.test/", DestinationGrant::ByName),
            ("https://acme.test/", DestinationGrant::Nowhere),
            ("https://evilacme.test/", DestinationGrant::Nowhere),
            ("https://.acme.test/", DestinationGrant::Nowhere),
            ("https://other.example:8443/", DestinationGrant::ByName),
            ("https://other.example/", DestinationGrant::Nowhere),
            ("http://192.168.1.20/", DestinationGrant::ByAddress),
            ("http://192.168.1.20:81/", DestinationGrant::Nowhere),
            ("http://192.168.1.21/", DestinationGrant::Nowhere),
            ("http://10.0.1.20/", DestinationGrant::Nowhere),
            ("http://[::1]:9000/", DestinationGrant::ByAddress),
            ("http://localhost:8080/", DestinationGrant::ByAddress),
            ("http://127.0.0.1:8080/", DestinationGrant::Nowhere),
        ] {
            assert_eq!(find_grant(&grants, url), Some(expected), "{url}");
        }
    }

    #[test]
    fn invalid_http_requests_are_not_sent() {
        for url in [
            "/x",
            "api.acme.example",
            "ftp://api.acme.example/",
            "https://user@api.acme.example/",
            "https://api.acme.example@evil.example/",
            "https:///x",
            "https://./x",
            "https://api.acme.example:99999/",
            "https://api.acme.example:/",
        ] {
            let destination = url.parse().ok().and_then(|uri| Destination::from_uri(&uri));
            assert_eq!(destination, None, "{url}");
        }
    }

    #[test]
    fn a_policy_names_hosts_and_nothing_else() {
        for text in [
            "",
            "*",
            "*.",
            "api.*.example",
            "https://api.example/path",
            "ftp://api.example",
            "user@api.example",
            "https://api.example:99999",
            "api example",
        ] {
            assert_eq!(HttpGrant::parse(text), None, "{text}");
        }
    }
}
