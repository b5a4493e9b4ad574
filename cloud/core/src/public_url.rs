//! The address that this cloud is reached by.

use http::{HeaderMap, header};

use crate::cloud::Cloud;

/// The address that this cloud is reached by: the configured one, or the one that the request was sent to.
pub fn public_url(cloud: &Cloud, headers: &HeaderMap) -> String {
    if let Some(url) = &cloud.configuration.public_url {
        return url.clone();
    }
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    // A name and a port, nothing that would be read as more of an address.
    let plain = host.filter(|host| {
        host.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte))
    });
    match plain {
        Some(host) => format!("http://{host}"),
        None => format!("http://{}", cloud.configuration.listen),
    }
}
