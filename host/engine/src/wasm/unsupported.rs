//! Compose fields that have no meaning for a component in a process, one sentence each.

use model::{Mount, NetworkMode, ServiceConfig};

use super::health_check;

/// Returns a warning for each field that is set and has no effect here, and for each folder that exposes the host.
/// Fields that only take away what a component does not have anyway (`cap_drop`, `security_opt`, `read_only`, ...) are
/// fulfilled without further work.
pub(super) fn warnings(config: &ServiceConfig) -> Vec<String> {
    let fields = [
        ("devices", !config.devices.is_empty()),
        ("gpu", config.gpu),
        ("cap_add", !config.cap_add.is_empty()),
        ("privileged", config.privileged),
        ("pid", !config.pid.is_empty()),
        // The target's parser writes out Docker's own default.
        (
            "ipc",
            !matches!(config.ipc.as_str(), "" | "shareable" | "private" | "none"),
        ),
        ("user", !config.user.is_empty()),
        ("group_add", !config.group_add.is_empty()),
        ("userns_mode", !config.userns_mode.is_empty()),
        ("cgroup_parent", !config.cgroup_parent.is_empty()),
        ("sysctls", !config.sysctls.is_empty()),
        ("ulimits", !config.ulimits.is_empty()),
        ("pids_limit", config.pids_limit > 0),
        ("mem_reservation", config.mem_reservation > 0),
        ("cpu_shares", config.cpu_shares > 0),
        ("oom_kill_disable", config.oom_kill_disable),
        ("init", config.init == Some(true)),
        ("stop_signal", has_stop_signal(config)),
        ("dns", !config.dns.is_empty()),
        ("dns_search", !config.dns_search.is_empty()),
        ("dns_opt", !config.dns_opt.is_empty()),
        ("domainname", !config.domainname.is_empty()),
        ("mac_address", !config.mac_address.is_empty()),
        (
            "ports",
            !config.ports.is_empty() && !has_own_address(config),
        ),
    ];
    let mut warnings: Vec<String> = fields
        .into_iter()
        .filter(|(_, is_set)| *is_set)
        .map(|(field, _)| sentence(field))
        .collect();
    warnings.extend(health_check::read(config).err());
    let has_fixed_address = config.networks.values().any(|network| {
        network.ipv4_address.is_some()
            || network.ipv6_address.is_some()
            || !network.link_local_ips.is_empty()
    });
    if has_fixed_address {
        warnings.push(
            "a service of the wasm engine has one address that the engine chooses: `ipv4_address`, \
             `ipv6_address` and `link_local_ips` are ignored"
                .into(),
        );
    }
    warnings.extend(config.mounts.iter().filter_map(opening));
    for mount in &config.mounts {
        if let Mount::Bind { source, target, .. } = mount
            && std::path::Path::new(source).is_file()
        {
            warnings.push(format!(
                "`{source}` is not mounted at `{target}`: the wasm engine mounts folders only"
            ));
        }
    }
    warnings
}

/// The kernel's folders, with what they expose: they do not contain real files, and writing there changes the host.
const OPENINGS: [(&str, &str); 2] = [
    (
        "/proc",
        "all processes with their command lines, and the kernel's settings",
    ),
    ("/sys", "all hardware, and the kernel's settings"),
];

/// Returns whether a folder of the host is the kernel's, and so must never be writable.
pub(super) fn is_the_kernels(source: &str) -> bool {
    let source = std::path::Path::new(source);
    OPENINGS
        .iter()
        .any(|(folder, _)| source.starts_with(folder))
}

/// Describes what a mount exposes of the host.
fn opening(mount: &Mount) -> Option<String> {
    let Mount::Bind { source, target, .. } = mount else {
        return None;
    };
    let path = std::path::Path::new(source);
    let (_, shows) = OPENINGS
        .iter()
        .find(|(folder, _)| path.starts_with(folder))?;
    Some(format!(
        "the service can read `{source}` of the host at `{target}`, as a user without privileges: it shows {shows}"
    ))
}

fn sentence(field: &str) -> String {
    match field {
        "stop_signal" => "`stop_signal` is ignored: a service of the wasm engine gets no signals; closing its standard input asks it to stop"
            .into(),
        "ports" => {
            "`ports` are ignored: the service has no address of its own to forward to".into()
        }
        _ => format!("`{field}` has no meaning for a service of the wasm engine and is ignored"),
    }
}

fn has_stop_signal(config: &ServiceConfig) -> bool {
    let signal = config.stop_signal.as_deref();
    signal.is_some_and(|signal| !matches!(signal, "SIGTERM" | "TERM" | "15"))
}

fn has_own_address(config: &ServiceConfig) -> bool {
    matches!(
        config.network_mode,
        NetworkMode::Bridge | NetworkMode::Network(_)
    )
}
