//! What existing clients and devices ask beside the data API, each of it small (docs/spec/cloud.md#other-endpoints).

pub(crate) mod access;
pub(crate) mod device_types;
pub(crate) mod download_config;
pub(crate) mod settings;
pub(crate) mod tunnel_server;

use http::{HeaderMap, header};

use crate::cloud::Cloud;

/// The address that this cloud is reached by: the configured one, or the one that the request was sent to.
pub(crate) fn address(cloud: &Cloud, headers: &HeaderMap) -> String {
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
