//! The public address of this cloud.

use http::{HeaderMap, header};

use crate::cloud::Cloud;

/// Returns the public address of this cloud: the configured one, or the one that the request was sent to.
pub fn public_url(cloud: &Cloud, headers: &HeaderMap) -> String {
    if let Some(url) = &cloud.configuration.public_url {
        return url.clone();
    }
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    // Only a name and a port, nothing that would be parsed as another part of an address.
    let plain = host.filter(|host| {
        host.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte))
    });
    match plain {
        Some(host) => format!("http://{host}"),
        None => format!("http://{}", cloud.configuration.listen),
    }
}
