//! The networks of a release, and the one with access to the device's API.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde_json::Value;

use super::attachments::{DEFAULT_NETWORK, network_name};
use super::reader::Reader;
use super::{digest, labels};
use crate::{DesiredNetwork, DeviceFacts, IpamPool, NetworkConfig, TargetApp};

/// The address of the device's API for services, on the network that the branding names
/// (docs/spec/device.md#feature-labels).
pub const SUPERVISOR_GATEWAY: &str = "10.114.104.1";
/// The address range of that network.
pub const SUPERVISOR_SUBNET: &str = "10.114.104.0/25";

/// Returns whether an address belongs to that network.
#[must_use]
pub fn is_of_supervisor_network(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => matches!(address.octets(), [10, 114, 104, 0..=127]),
        IpAddr::V6(_) => false,
    }
}

/// Reads one network as the release defines it.
pub(super) fn network(
    mut reader: Reader<'_>,
    name: &str,
    app: &TargetApp,
    facts: &DeviceFacts,
) -> DesiredNetwork {
    let mut config = NetworkConfig {
        driver: reader.text("driver").unwrap_or_else(|| "bridge".into()),
        driver_opts: reader.pairs("driver_opts"),
        ipam_driver: "default".into(),
        enable_ipv6: reader.flag("enable_ipv6"),
        internal: reader.flag("internal"),
        config_only: reader.flag("config_only"),
        labels: labels::rewrite_user_labels(reader.pairs("labels"), &facts.branding),
        ..NetworkConfig::default()
    };
    if let Some(fields) = reader.record("ipam") {
        reader.within("ipam", fields, |ipam| {
            if let Some(driver) = ipam.text("driver") {
                config.ipam_driver = driver;
            }
            config.ipam_options = ipam.pairs("options");
            config.ipam = pools(ipam);
        });
    }
    reader.finish();
    let mut forced = labels::app_labels(app, facts);
    if !config.ipam.is_empty() {
        forced.insert(facts.branding.label("private.ipam.config"), "true".into());
    }
    finished(network_name(&app.uuid, name), config, forced, facts)
}

/// Returns the networks that services name but nothing defines, and the default one.
pub(super) fn undefined(
    defined: &BTreeMap<String, DesiredNetwork>,
    named: &BTreeSet<String>,
    only_host: bool,
    app: &TargetApp,
    facts: &DeviceFacts,
) -> BTreeMap<String, DesiredNetwork> {
    let mut added = BTreeMap::new();
    let names = named.iter().map(String::as_str).chain([DEFAULT_NETWORK]);
    for name in names.filter(|name| !defined.contains_key(*name)) {
        let config = NetworkConfig {
            driver: "bridge".into(),
            ipam_driver: "default".into(),
            // If nothing joins it, it uses no addresses and no interface.
            config_only: only_host && name == DEFAULT_NETWORK,
            ..NetworkConfig::default()
        };
        let network = finished(
            network_name(&app.uuid, name),
            config,
            labels::app_labels(app, facts),
            facts,
        );
        added.insert(name.to_owned(), network);
    }
    added
}

fn pools(reader: &mut Reader<'_>) -> Vec<IpamPool> {
    let mut pools = Vec::new();
    for item in reader.items("config") {
        let Value::Object(fields) = item else {
            reader.ignored("config", item);
            continue;
        };
        let read = reader.within("config", fields, |pool| IpamPool {
            subnet: pool.text("subnet"),
            gateway: pool.text("gateway"),
            ip_range: pool.text("ip_range"),
            aux_addresses: pool.pairs("aux_addresses"),
        });
        if read.subnet.is_none() || read.gateway.is_none() {
            reader.warn("config", "has an entry without a subnet or a gateway");
        }
        pools.push(read);
    }
    pools.sort_unstable_by(|a, b| {
        (&a.subnet, &a.gateway, &a.ip_range).cmp(&(&b.subnet, &b.gateway, &b.ip_range))
    });
    pools
}

/// Adds digest and labels. The digest covers only the release's settings: the supervisor's own
/// labels must not cause a network to be created again.
fn finished(
    engine_name: String,
    mut config: NetworkConfig,
    forced: BTreeMap<String, String>,
    facts: &DeviceFacts,
) -> DesiredNetwork {
    let digest = digest::compute(&config);
    config.labels.extend(forced);
    config
        .labels
        .insert(digest::label(&facts.branding), digest.clone());
    DesiredNetwork {
        engine_name,
        config,
        digest,
    }
}
