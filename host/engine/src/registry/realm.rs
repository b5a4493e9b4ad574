//! The services to which a registry may have us send our password.
//!
//! A registry answers a request without credentials with the address of a token service. Whoever runs the registry, or
//! has broken into it, can name any address there, and the password is the device's key to its cloud. So it is sent
//! only to the registry's own host and to the cloud's, which knows it already.

use std::net::IpAddr;

use registry_protocol::RepositoryName;
use reqwest::Url;

use crate::RegistryAuth;

/// Reasons why no token is requested from an address.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum RealmError {
    #[error("its registry names no usable token service")]
    Invalid,
    #[error("its registry names a token service without TLS (`{0}`)")]
    Plain(String),
    #[error(
        "its registry demands that this device's key be sent to `{0}`, which is neither the registry's host nor the cloud's"
    )]
    Foreign(String),
}

/// Returns the address of the token service for a repository of `place`, as its registry names it.
pub(super) fn checked(
    realm: &str,
    place: &RepositoryName,
    auth: Option<&RegistryAuth>,
) -> Result<Url, RealmError> {
    let url = Url::parse(realm).map_err(|_| RealmError::Invalid)?;
    let host = url.host_str().ok_or(RealmError::Invalid)?;
    let cloud = auth.and_then(|auth| Url::parse(auth.cloud.as_deref()?).ok());
    // The owner has allowed that the key is sent to this address without TLS.
    let is_cloud = cloud
        .as_ref()
        .is_some_and(|cloud| cloud.origin() == url.origin());
    let plain_is_right = is_cloud || place.is_loopback() && is_loopback(host);
    match url.scheme() {
        "https" => {}
        "http" if plain_is_right => {}
        _ => return Err(RealmError::Plain(url.origin().ascii_serialization())),
    }
    if auth.is_none() {
        // No credentials are sent.
        return Ok(url);
    }
    let of_registry = Url::parse(&format!("https://{}", place.host)).ok();
    let is_known = of_registry
        .iter()
        .chain(&cloud)
        .any(|ours| ours.host() == url.host());
    if is_known {
        Ok(url)
    } else {
        Err(RealmError::Foreign(host.to_owned()))
    }
}

/// Returns whether a URL's host is this machine.
fn is_loopback(host: &str) -> bool {
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(registry: &str, cloud: Option<&str>, realm: &str) -> Result<(), RealmError> {
        let place = RepositoryName {
            host: registry.to_owned(),
            repository: "v2/ab".to_owned(),
        };
        let auth = RegistryAuth {
            user: "d_1".to_owned(),
            password: "key".to_owned(),
            cloud: cloud.map(str::to_owned),
        };
        checked(realm, &place, Some(&auth)).map(drop)
    }

    #[test]
    fn the_devices_key_goes_to_the_hosts_of_registry_and_cloud_alone() {
        let foreign = |host: &str| Err(RealmError::Foreign(host.to_owned()));
        let plain = |origin: &str| Err(RealmError::Plain(origin.to_owned()));
        let cloud = Some("https://api.acme.example");
        for (registry, realm, expected) in [
            ("r.acme.example", "https://r.acme.example/token", Ok(())),
            (
                "r.acme.example:5000",
                "https://R.acme.example/token",
                Ok(()),
            ),
            (
                "r.acme.example",
                "https://api.acme.example/auth/v1/token",
                Ok(()),
            ),
            (
                "r.acme.example",
                "https://evil.example/token",
                foreign("evil.example"),
            ),
            (
                "r.acme.example",
                "https://r.acme.example.evil.example/token",
                foreign("r.acme.example.evil.example"),
            ),
            (
                "r.acme.example",
                "https://r.acme.example@evil.example/token",
                foreign("evil.example"),
            ),
            (
                "r.acme.example",
                "https://acme.example/token",
                foreign("acme.example"),
            ),
            (
                "r.acme.example",
                "https://127.0.0.1/token",
                foreign("127.0.0.1"),
            ),
            (
                "r.acme.example",
                "http://r.acme.example/token",
                plain("http://r.acme.example"),
            ),
            (
                "r.acme.example",
                "http://api.acme.example/token",
                plain("http://api.acme.example"),
            ),
            ("r.acme.example", "nonsense", Err(RealmError::Invalid)),
            ("127.0.0.1:5000", "http://127.0.0.1:8080/token", Ok(())),
            (
                "127.0.0.1:5000",
                "http://evil.example/",
                plain("http://evil.example"),
            ),
            (
                "127.0.0.1:5000",
                "https://evil.example/",
                foreign("evil.example"),
            ),
        ] {
            assert_eq!(
                check(registry, cloud, realm),
                expected,
                "{registry} {realm}"
            );
        }
        // A cloud that the owner has allowed to be without TLS.
        let cloud = Some("http://192.168.7.2:8080");
        let realm = "http://192.168.7.2:8080/auth/v1/token";
        assert_eq!(check("192.168.7.2:5000", cloud, realm), Ok(()));
        let other = "http://192.168.7.2:8081/auth/v1/token";
        let expected = plain("http://192.168.7.2:8081");
        assert_eq!(check("192.168.7.2:5000", cloud, other), expected);
    }

    #[test]
    fn anonymous_tokens_may_come_from_any_address_with_tls() {
        let place = RepositoryName {
            host: "registry-1.docker.io".to_owned(),
            repository: "library/busybox".to_owned(),
        };
        assert!(checked("https://auth.docker.io/token", &place, None).is_ok());
        assert!(checked("http://auth.docker.io/token", &place, None).is_err());
    }
}
