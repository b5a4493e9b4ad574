//! The device's account at the registry of its cloud: `registryEndpoint` of config.json, and the device's own key.

use engine::RegistryAuth;
use model::compose::CloudAccess;
use os::ConfigJson;
use store::Store;

/// Returns the registry's host and the account there; `None` if there is no cloud, or it names no
/// registry.
pub(crate) fn read(
    config: &ConfigJson,
    store: &Store,
    access: Option<CloudAccess>,
) -> Option<(String, RegistryAuth)> {
    let access = access?;
    let keys = config
        .read()
        .inspect_err(|error| {
            tracing::warn!(
                %error,
                "failed to read the registry's address from config.json; images are pulled without credentials"
            );
        })
        .ok()?;
    let endpoint = keys.get("registryEndpoint")?.as_str()?;
    let host = endpoint
        .split_once("://")
        .map_or(endpoint, |(_, host)| host);
    let account = RegistryAuth {
        user: format!("d_{}", store.device_uuid()),
        password: access.key.reveal().to_owned(),
        cloud: Some(access.url),
    };
    Some((host.trim_end_matches('/').to_owned(), account))
}
