//! One service: each compose field with its default (docs/spec/device.md#compose-fields), then the supervisor's
//! additions.

use std::collections::BTreeMap;

use serde_json::Value;

use super::api_keys::KeyError;
use super::attachments::{Attachments, attachments};
use super::features::{self, FeatureContext};
use super::labels::UpdateRules;
use super::reader::{Reader, is_true};
use super::service_context::ServiceContext;
use super::{dependencies, digest, environment, healthcheck, labels, limits, mounts, ports};
use crate::{
    DEPENDS_ON_LABEL, DesiredService, Mount, NetworkMode, RestartPolicy, STOP_GRACE_PERIOD_LABEL,
    ServiceConfig, ServiceKey,
};

/// The size of shared memory if the field is missing: 64 MiB.
const SHM_SIZE: u64 = 64 << 20;
/// Seconds before a stop becomes a kill, if the field is missing.
const STOP_GRACE_PERIOD: u64 = 10;

/// A service, and what the release must define for it.
pub(super) struct ReadService {
    pub(super) service: DesiredService,
    /// Volumes by their names in the release.
    pub(super) volumes: Vec<String>,
    /// Networks by their names in the release.
    pub(super) networks: Vec<String>,
}

pub(super) fn service(
    mut reader: Reader<'_>,
    place: ServiceContext<'_>,
) -> Result<ReadService, KeyError> {
    let ServiceContext {
        app,
        release,
        service,
        facts,
        ..
    } = place;
    let branding = &facts.branding;
    let mut labels = labels::rewrite_user_labels(reader.pairs("labels"), branding);
    labels.extend(labels::rewrite_user_labels(
        service.labels.clone(),
        branding,
    ));
    labels.extend(labels::service_labels(place));

    let mut depends_on = dependencies::depends_on(&mut reader);
    let Attachments {
        mode,
        networks,
        names: network_names,
        wants_supervisor,
    } = attachments(&mut reader, &app.uuid, &service.name, branding);
    if let NetworkMode::Service(other) = &mode {
        depends_on.insert(other.clone());
    }
    if wants_supervisor && !features::has_supervisor_api(&labels, branding) {
        let what = format!(
            "names `{}`, which needs the label `{}`: it was ignored",
            branding.network,
            branding.label("features.supervisor-api")
        );
        reader.warn("networks", &what);
    }
    let (mounts, volume_names) = mounts::volumes(&mut reader, app.id);
    let mut config = ServiceConfig {
        image: service.image.clone(),
        command: words(&mut reader, "command"),
        entrypoint: words(&mut reader, "entrypoint"),
        environment: variables(&mut reader, place),
        labels,
        restart: restart(&mut reader),
        network_mode: mode,
        networks,
        ports: ports::ports(&mut reader),
        mounts: with_shared_folder(&mut reader, mounts, place),
        tmpfs: mounts::tmpfs(&mut reader),
        devices: mounts::devices(&mut reader),
        healthcheck: healthcheck::healthcheck(&mut reader),
        mem_limit: reader.size("mem_limit", 0),
        mem_reservation: reader.size("mem_reservation", 0),
        shm_size: reader.size("shm_size", SHM_SIZE),
        stop_grace_period: stop_grace_period(&mut reader),
        stop_signal: reader
            .text("stop_signal")
            .filter(|signal| !signal.is_empty()),
        ulimits: limits::ulimits(&mut reader),
        sysctls: reader.pairs("sysctls"),
        dns: reader.texts("dns"),
        dns_search: reader.texts("dns_search"),
        dns_opt: reader.set("dns_opt"),
        cap_add: reader.set("cap_add"),
        cap_drop: reader.set("cap_drop"),
        extra_hosts: extra_hosts(&mut reader),
        group_add: reader.set("group_add"),
        security_opt: reader.set("security_opt"),
        nano_cpus: limits::cpus(&mut reader),
        cpu_shares: reader.integer("cpu_shares", 0),
        cpu_quota: reader.integer("cpu_quota", -1),
        oom_score_adj: limits::oom_score_adj(&mut reader),
        cpuset: reader.text("cpuset").unwrap_or_default(),
        domainname: reader.text("domainname").unwrap_or_default(),
        hostname: reader.text("hostname").unwrap_or_default(),
        mac_address: reader.text("mac_address").unwrap_or_default(),
        pid: namespace(&mut reader, "pid", ""),
        userns_mode: reader.text("userns_mode").unwrap_or_default(),
        cgroup_parent: reader.text("cgroup_parent").unwrap_or_default(),
        user: reader.text("user").unwrap_or_default(),
        working_dir: working_dir(&mut reader),
        ipc: namespace(&mut reader, "ipc", "shareable"),
        pids_limit: reader.integer("pids_limit", -1),
        privileged: reader.flag("privileged"),
        read_only: reader.flag("read_only"),
        oom_kill_disable: reader.flag("oom_kill_disable"),
        init: reader.take("init").map(is_true),
        tty: reader.take("tty").is_none_or(is_true),
        gpu: false,
    };
    if config.network_mode == NetworkMode::Host && config.hostname.is_empty() {
        config.hostname.clone_from(&facts.hostname);
    }
    let mut init_environment = BTreeMap::new();
    let warnings = features::grant(FeatureContext {
        config: &mut config,
        init_environment: &mut init_environment,
        place,
        warnings: Vec::new(),
    })?;
    for warning in warnings {
        reader
            .findings
            .warn(format!("service `{}`: {warning}", service.name));
    }
    reader.finish();

    let rules = UpdateRules::from_labels(&config.labels, branding);
    let digest = digest::compute_for_service(&config, branding);
    config
        .labels
        .insert(digest::label(branding), digest.clone());
    // Added after the digest, which already includes the period itself.
    config.labels.insert(
        branding.label(STOP_GRACE_PERIOD_LABEL),
        config.stop_grace_period.to_string(),
    );
    // Excluded from the digest: a changed order must not recreate a container.
    let label = branding.label(DEPENDS_ON_LABEL);
    config.labels.remove(&label);
    if !depends_on.is_empty() {
        let others: Vec<&str> = depends_on.iter().map(|name| name.as_str()).collect();
        config.labels.insert(label, others.join(","));
    }
    Ok(ReadService {
        service: DesiredService {
            key: ServiceKey {
                app: app.uuid.clone(),
                service: service.name.clone(),
            },
            app_id: app.id,
            id: service.id,
            image_id: service.image_id,
            release: release.id,
            commit: release.commit.clone(),
            running: service.running,
            strategy: rules.strategy,
            handover_timeout: rules.handover_timeout,
            requires_reboot: rules.requires_reboot,
            depends_on: depends_on.into_iter().collect(),
            config,
            digest,
            init_environment,
        },
        volumes: volume_names,
        networks: network_names,
    })
}

/// Reads a list unchanged; a text is split as a shell does, without expanding variables.
fn words(reader: &mut Reader<'_>, field: &str) -> Option<Vec<String>> {
    let value = reader.take(field)?;
    match value {
        Value::Array(items) => {
            let words: Option<Vec<String>> = items.iter().map(super::reader::scalar).collect();
            if words.is_none() {
                reader.problem(field, value, "a string or a list of strings");
            }
            words
        }
        Value::String(text) => match shell_words::split(text) {
            Ok(words) => Some(words),
            Err(_) => {
                reader.problem(field, value, "a command whose quotes are closed");
                None
            }
        },
        other => {
            reader.problem(field, other, "a string or a list of strings");
            None
        }
    }
}

/// Returns the composition's variables, overlaid with the service's own, then with those for every
/// service.
fn variables(reader: &mut Reader<'_>, place: ServiceContext<'_>) -> BTreeMap<String, String> {
    let mut variables = reader.pairs("environment");
    // A variable without a name, or with `=` in its name, cannot be passed on.
    variables.retain(|name, _| {
        let usable = !name.is_empty() && !name.contains('=');
        if !usable {
            let name = Value::String(name.clone());
            reader.ignored("environment", &name);
        }
        usable
    });
    variables.extend(place.service.environment.clone());
    environment::fill_in(&mut variables, place);
    variables
}

fn restart(reader: &mut Reader<'_>) -> RestartPolicy {
    let read = |value: &Value| match value.as_str()? {
        "always" => Some(RestartPolicy::Always),
        "no" => Some(RestartPolicy::No),
        "on-failure" => Some(RestartPolicy::OnFailure),
        "unless-stopped" => Some(RestartPolicy::UnlessStopped),
        _ => None,
    };
    let policy = reader.read("restart", read, "`always` is used");
    policy.unwrap_or(RestartPolicy::Always)
}

/// Adds the folder of locks and hand-over files that every service shares with the supervisor.
fn with_shared_folder(
    reader: &mut Reader<'_>,
    mut all: Vec<Mount>,
    place: ServiceContext<'_>,
) -> Vec<Mount> {
    let facts = place.facts;
    let source = facts.lock_folder(place.app.id, &place.service.name);
    let aliases = facts
        .branding
        .aliases
        .iter()
        .map(|alias| format!("/tmp/{}", alias.trim_end_matches('_').to_ascii_lowercase()));
    for target in std::iter::once(facts.branding.service_folder()).chain(aliases) {
        let before = all.len();
        all.retain(|mount| mounts::target_of(mount) != target);
        if all.len() < before {
            let what = format!(
                "mounts at `{target}`, which is reserved for the supervisor: it was ignored"
            );
            reader.warn("volumes", &what);
        }
        all.push(Mount::Bind {
            source: source.clone(),
            target,
            read_only: false,
        });
    }
    all.sort_unstable();
    all
}

/// Reads whole seconds, rounded up.
fn stop_grace_period(reader: &mut Reader<'_>) -> u64 {
    reader
        .duration("stop_grace_period")
        .and_then(|nanoseconds| u64::try_from(nanoseconds).ok())
        .map_or(STOP_GRACE_PERIOD, |nanoseconds| {
            nanoseconds.div_ceil(1_000_000_000)
        })
}

fn working_dir(reader: &mut Reader<'_>) -> String {
    let path = reader.text("working_dir").unwrap_or_default();
    let trimmed = path.trim_end_matches('/');
    if trimmed.is_empty() && !path.is_empty() {
        return "/".into();
    }
    trimmed.to_owned()
}

/// Reads a namespace to share. Another container's cannot be named before that container exists.
fn namespace(reader: &mut Reader<'_>, field: &str, default: &str) -> String {
    match reader.text(field) {
        None => default.to_owned(),
        Some(text) if text.starts_with("service:") || text.starts_with("container:") => {
            reader.warn(
                field,
                "names another container, which is not supported, and was ignored",
            );
            default.to_owned()
        }
        Some(text) => text,
    }
}

/// Reads `host=address` or `host:address` in a list, or a map of one or several addresses; stored
/// as `host:address`.
fn extra_hosts(reader: &mut Reader<'_>) -> Vec<String> {
    let mut hosts = Vec::new();
    match reader.take("extra_hosts") {
        None => {}
        Some(Value::Array(items)) => {
            for item in items {
                // `=` first: an address may contain colons.
                match item
                    .as_str()
                    .and_then(|text| text.split_once('=').or_else(|| text.split_once(':')))
                {
                    Some((host, address)) if !host.is_empty() && !address.is_empty() => {
                        hosts.push(format!("{host}:{address}"));
                    }
                    _ => reader.ignored("extra_hosts", item),
                }
            }
        }
        Some(Value::Object(entries)) => {
            for (host, addresses) in entries {
                let addresses = match addresses {
                    Value::Array(items) => items.as_slice(),
                    one => std::slice::from_ref(one),
                };
                for address in addresses {
                    match address.as_str().filter(|text| !text.is_empty()) {
                        Some(address) => hosts.push(format!("{host}:{address}")),
                        None => reader.ignored("extra_hosts", address),
                    }
                }
            }
        }
        Some(other) => reader.ignored("extra_hosts", other),
    }
    hosts.sort_unstable();
    hosts.dedup();
    hosts
}
