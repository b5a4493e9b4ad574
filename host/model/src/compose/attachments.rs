//! The connection of a service to networks: its `network_mode` and its `networks`.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde_json::{Map, Value};

use super::reader::{Reader, scalar};
use crate::{AppUuid, Branding, NetworkAttachment, NetworkMode, ServiceName};

/// The network that a service is in if it names none.
pub(super) const DEFAULT_NETWORK: &str = "default";

/// Returns the engine's name of a network of an app (docs/spec/device.md#compose-networks).
pub(super) fn network_name(app: &AppUuid, name: &str) -> String {
    format!("{app}_{name}")
}

/// The networks and the network mode of a service.
pub(super) struct Attachments {
    pub(super) mode: NetworkMode,
    /// The networks, by their names at the engine.
    pub(super) networks: BTreeMap<String, NetworkAttachment>,
    /// The names that the release must define.
    pub(super) names: Vec<String>,
    /// Whether the service requested the network with access to the device's API.
    pub(super) wants_supervisor: bool,
}

pub(super) fn attachments(
    reader: &mut Reader<'_>,
    app: &AppUuid,
    service: &ServiceName,
    branding: &Branding,
) -> Attachments {
    let mode = reader.text("network_mode");
    let mut memberships = networks(reader, service);
    // The bridge to the API is not a network of the app, and this field does not decide whether the
    // service may join it.
    let mut wants_supervisor = false;
    let mut is_of_app = |name: &String| {
        let is_supervisor = *name == branding.network;
        wants_supervisor |= is_supervisor;
        !is_supervisor
    };
    memberships.retain(|(name, _)| is_of_app(name));
    let mode = mode.filter(is_of_app);
    let first = || {
        memberships
            .first()
            .map_or(DEFAULT_NETWORK, |(name, _)| name)
            .to_owned()
    };
    let named = match mode.as_deref() {
        Some(isolated @ ("host" | "none")) => {
            return alone(reader, isolated, memberships.is_empty(), wants_supervisor);
        }
        Some(text) if text.starts_with("service:") => {
            match text["service:".len()..].parse::<ServiceName>() {
                Ok(_) => return alone(reader, text, memberships.is_empty(), wants_supervisor),
                Err(_) => {
                    let expected = "the name of a service behind `service:`";
                    reader.problem_text("network_mode", text, expected);
                    first()
                }
            }
        }
        Some("bridge") => {
            let names = memberships.iter().map(|(name, _)| name.clone()).collect();
            return Attachments {
                mode: NetworkMode::Bridge,
                networks: by_engine_name(app, memberships),
                names,
                wants_supervisor,
            };
        }
        Some(text) if text.starts_with("container:") => {
            reader.warn(
                "network_mode",
                "names a container, which is not supported, and was ignored",
            );
            first()
        }
        Some("") | None => first(),
        Some(name) if crate::ids::is_name(name) => name.to_owned(),
        Some(other) => {
            let expected = "`bridge`, `host`, `none`, `service:NAME` or a network's name";
            reader.problem_text("network_mode", other, expected);
            first()
        }
    };
    if !memberships.iter().any(|(name, _)| *name == named) {
        memberships.push((named.clone(), joined_as(service)));
    }
    Attachments {
        names: memberships.iter().map(|(name, _)| name.clone()).collect(),
        networks: by_engine_name(app, memberships),
        mode: NetworkMode::Network(network_name(app, &named)),
        wants_supervisor,
    }
}

/// Reads a mode that excludes the service's own networks: engines refuse the combination.
fn alone(
    reader: &mut Reader<'_>,
    mode: &str,
    no_networks: bool,
    wants_supervisor: bool,
) -> Attachments {
    if !no_networks {
        reader.warn(
            "networks",
            &format!("cannot be joined with `network_mode` `{mode}` and was ignored"),
        );
    }
    Attachments {
        mode: match mode {
            "host" => NetworkMode::Host,
            service => service
                .strip_prefix("service:")
                .and_then(|name| name.parse().ok())
                .map_or(NetworkMode::None, NetworkMode::Service),
        },
        networks: BTreeMap::new(),
        names: Vec::new(),
        wants_supervisor,
    }
}

/// Returns the networks in their given order: the first is the fallback for `network_mode`.
fn networks(reader: &mut Reader<'_>, service: &ServiceName) -> Vec<(String, NetworkAttachment)> {
    let mut joined: Vec<(String, NetworkAttachment)> = Vec::new();
    let nothing = Map::new();
    match reader.take("networks") {
        None => {}
        Some(Value::Array(items)) => {
            let mut names = BTreeSet::new();
            for item in items {
                match scalar(item).filter(|name| crate::ids::is_name(name)) {
                    Some(name) if !names.insert(name.clone()) => {}
                    Some(name) => joined.push((name, joined_as(service))),
                    None => reader.problem("networks", item, "a network's name"),
                }
            }
        }
        Some(Value::Object(entries)) => {
            for (name, options) in entries {
                if !crate::ids::is_name(name) {
                    reader.problem_text("networks", name, "a network's name");
                    continue;
                }
                let options = match options {
                    Value::Null => &nothing,
                    Value::Object(options) => options,
                    other => {
                        reader.problem("networks", other, "a map of options, or nothing");
                        continue;
                    }
                };
                let attachment = reader.within("networks", &nothing, |networks| {
                    networks.within(name, options, |options| attachment(options, service))
                });
                joined.push((name.clone(), attachment));
            }
        }
        Some(other) => reader.problem("networks", other, "a list or a map of networks"),
    }
    joined
}

fn attachment(reader: &mut Reader<'_>, service: &ServiceName) -> NetworkAttachment {
    let mut aliases = reader.texts("aliases");
    aliases.push(service.to_string());
    aliases.sort_unstable();
    aliases.dedup();
    NetworkAttachment {
        aliases,
        ipv4_address: address::<Ipv4Addr>(reader, "ipv4_address", "an IPv4 address"),
        ipv6_address: address::<Ipv6Addr>(reader, "ipv6_address", "an IPv6 address"),
        link_local_ips: reader.set("link_local_ips"),
    }
}

fn address<A: FromStr>(reader: &mut Reader<'_>, field: &str, expected: &str) -> Option<String> {
    let text = reader.text(field).filter(|text| !text.is_empty())?;
    if text.parse::<A>().is_err() {
        reader.problem_text(field, &text, expected);
    }
    Some(text)
}

fn joined_as(service: &ServiceName) -> NetworkAttachment {
    NetworkAttachment {
        aliases: vec![service.to_string()],
        ..NetworkAttachment::default()
    }
}

fn by_engine_name(
    app: &AppUuid,
    given: Vec<(String, NetworkAttachment)>,
) -> BTreeMap<String, NetworkAttachment> {
    given
        .into_iter()
        .map(|(name, attachment)| (network_name(app, &name), attachment))
        .collect()
}
