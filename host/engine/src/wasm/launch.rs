//! The settings for a container's process: turns the record, the networks and the folders into a
//! [`Launch`].

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use confinement::{MissingWall, Wall};
use model::{Mount, NetworkMode, truthy_text};
use wasm_service::SupervisorFolder;
use wasm_service::record::{Api, ExtraHost, Folder, FolderOwner, Launch, Network, OwnNetwork};

use super::record::ContainerRecord;
use super::{WasmState, cgroups, health_check, unsupported};
use crate::EngineError;

impl WasmState {
    /// # Errors
    /// [`EngineError::NotFound`] if something that it needs is gone.
    pub(super) fn launch(
        &self,
        record: &ContainerRecord,
        component: PathBuf,
    ) -> Result<Launch, EngineError> {
        let config = &record.config;
        let groups = cgroups::make(record, &self.ownership);
        let mut missing_walls = groups.missing;
        if let Err(reason) = &self.users {
            missing_walls.push(MissingWall {
                wall: Wall::User,
                reason: reason.clone(),
            });
        }
        Ok(Launch {
            component,
            arguments: arguments(record),
            environment: record.environment(),
            working_dir: config.working_dir.clone(),
            folders: self.mounts(record)?,
            restart: config.restart,
            memory_limit: record.memory_limit(),
            nano_cpus: record.cpu_limit(),
            cpuset: cpus(&config.cpuset),
            oom_score_adj: config.oom_score_adj,
            cgroups: groups.made,
            user: record.user,
            missing_walls,
            requires_confinement: self.config.requires_confinement(),
            network: self.network(record)?,
            ports: match config.network_mode {
                NetworkMode::Bridge | NetworkMode::Network(_) => config.ports.clone(),
                NetworkMode::Host | NetworkMode::None | NetworkMode::Service(_) => Vec::new(),
            },
            // Whoever set the target was warned about an impossible check.
            health_check: health_check::read(config).ok().flatten(),
        })
    }

    /// Returns the folders that the service sees, each guest path once: the last one given.
    fn mounts(&self, record: &ContainerRecord) -> Result<Vec<Folder>, EngineError> {
        let container = self.folders.container(&record.id);
        let config = &record.config;
        let mut folders = BTreeMap::new();
        let mut add = |guest: &str, host: PathBuf, owner, read_only, volatile| {
            let guest = normal(guest);
            let folder = Folder {
                host,
                guest: guest.clone(),
                read_only,
                volatile,
                owner,
            };
            folders.insert(guest, folder);
        };
        use FolderOwner::{App, Host, Service, Supervisor};
        add(
            "/",
            container.join("root"),
            Service,
            config.read_only,
            false,
        );
        let memory = |target: &str| container.join("tmpfs").join(hex::encode(normal(target)));
        for target in config.tmpfs.keys() {
            add(target, memory(target), Service, false, true);
        }
        for mount in &config.mounts {
            match mount {
                Mount::Volume {
                    source,
                    target,
                    read_only,
                } => add(target, self.volume_data(source)?, App, *read_only, false),
                Mount::Anonymous { target } => {
                    let name = hex::encode(normal(target));
                    let host = container.join("anonymous").join(name);
                    add(target, host, Service, false, false);
                }
                Mount::Tmpfs { target, .. } => add(target, memory(target), Service, false, true),
                Mount::Bind {
                    source,
                    target,
                    read_only,
                } => {
                    let source = Path::new(source);
                    // The folder that a service shares with the supervisor is created; of the host's folders, only
                    // existing ones are mounted.
                    let owner = match SupervisorFolder::below(&self.supervisors_folder(), source) {
                        Some(folder) => {
                            folder.prepare().map_err(|error| {
                                let what = format!("mount `{target}` in `{}`", record.name);
                                EngineError::failed(what, error)
                            })?;
                            Supervisor
                        }
                        None if source.is_dir() => Host,
                        None => continue,
                    };
                    let read_only =
                        *read_only || unsupported::is_the_kernels(&source.to_string_lossy());
                    add(target, source.to_owned(), owner, read_only, false);
                }
            }
        }
        Ok(folders.into_values().collect())
    }

    /// Returns the path of the supervisor's folder in the host's `/tmp`.
    fn supervisors_folder(&self) -> PathBuf {
        let branding = &self.ownership.branding;
        self.config.host_root.join(branding.host_folder())
    }

    fn network(&self, record: &ContainerRecord) -> Result<Network, EngineError> {
        let config = &record.config;
        let of = match &config.network_mode {
            NetworkMode::None => return Ok(Network::None),
            NetworkMode::Host => return Ok(Network::Host),
            NetworkMode::Bridge | NetworkMode::Network(_) => record.clone(),
            NetworkMode::Service(_) => match &record.shares {
                Some(other) => self.our_container(other)?,
                None => record.clone(),
            },
        };
        let mut outward = matches!(of.config.network_mode, NetworkMode::Bridge);
        let mut tables = Vec::new();
        for name in of.networks(&self.ownership) {
            let network = self
                .network_record(&name)
                .ok_or_else(|| EngineError::not_found(format!("the network `{name}`")))?;
            outward |= !network.config.internal;
            tables.push(self.members_file(&name));
        }
        Ok(Network::Own(OwnNetwork {
            address: of.address,
            tables,
            outward,
            api: self.api(record),
            extra_hosts: extra_hosts(&config.extra_hosts),
        }))
    }

    /// Returns access to the API, if the service has the label, which also puts the API's address
    /// into the environment; the variable, which any service can set, is not enough.
    fn api(&self, record: &ContainerRecord) -> Option<Api> {
        let branding = &self.ownership.branding;
        let label = record
            .config
            .labels
            .get(&branding.label("features.supervisor-api"));
        if !label.is_some_and(|label| truthy_text(label)) {
            return None;
        }
        let mut address = self.config.api?;
        if address.ip().is_unspecified() {
            address = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), address.port());
        }
        let host = record
            .config
            .environment
            .get(&branding.env("SUPERVISOR_HOST"));
        Some(Api {
            address,
            host: host.cloned().unwrap_or_else(|| address.ip().to_string()),
        })
    }
}

/// Returns the program's name, as a shell would pass it, then entrypoint and command.
fn arguments(record: &ContainerRecord) -> Vec<String> {
    let config = &record.config;
    let image = config.image.as_str();
    let name = image.rsplit('/').next().unwrap_or(image);
    let name = name.split(['@', ':']).next().unwrap_or(name);
    let name = name.strip_suffix(".wasm").unwrap_or(name);
    let mut arguments = vec![name.to_owned()];
    arguments.extend(config.entrypoint.iter().flatten().cloned());
    arguments.extend(config.command.iter().flatten().cloned());
    arguments
}

/// Parses a list such as `0-2,4`; parts that are not numbers are left out.
fn cpus(text: &str) -> Vec<usize> {
    const MOST: usize = 1024;
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let part = part.trim();
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.trim().parse(), last.trim().parse::<usize>()) {
            cpus.extend(first..=last.min(MOST));
        }
    }
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

/// Parses `host:address`; the address may be an IPv6 address, or `host-gateway`.
fn extra_hosts(entries: &[String]) -> BTreeMap<String, ExtraHost> {
    let parse = |entry: &String| {
        let (name, address) = entry.split_once(':')?;
        let host = match address.trim().trim_matches(['[', ']']) {
            "host-gateway" => ExtraHost::HostGateway,
            address => ExtraHost::Address(address.parse::<IpAddr>().ok()?),
        };
        Some((name.trim().to_ascii_lowercase(), host))
    };
    entries.iter().filter_map(parse).collect()
}

/// Returns a guest path with one slash at its beginning and none at its end.
fn normal(path: &str) -> String {
    let parts = path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".");
    format!("/{}", parts.collect::<Vec<_>>().join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_sets_are_numbers_and_ranges() {
        for (text, expected) in [
            ("", vec![]),
            ("0", vec![0]),
            ("0-2,4", vec![0, 1, 2, 4]),
            (" 3 , 1-1,x,2-", vec![1, 3]),
        ] {
            assert_eq!(cpus(text), expected, "{text}");
        }
        assert!(cpus("0-99999999999").len() <= 1025);
    }

    #[test]
    fn extra_hosts_are_names_and_addresses() {
        let entries = [
            "Printer:10.0.0.9",
            "six:[fd00::1]",
            "host.internal:host-gateway",
            "x:y",
            "z",
        ];
        let hosts = extra_hosts(&entries.map(str::to_owned));
        let address = |text: &str| ExtraHost::Address(text.parse().unwrap());
        let expected = BTreeMap::from([
            ("printer".to_owned(), address("10.0.0.9")),
            ("six".to_owned(), address("fd00::1")),
            ("host.internal".to_owned(), ExtraHost::HostGateway),
        ]);
        assert_eq!(hosts, expected);
    }

    #[test]
    fn guest_paths_are_normal() {
        for (path, expected) in [
            ("/data/", "/data"),
            ("data", "/data"),
            ("//a/./b", "/a/b"),
            ("/", "/"),
        ] {
            assert_eq!(normal(path), expected);
        }
    }
}
