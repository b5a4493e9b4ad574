//! Builders of states with unobtrusive defaults: a test specifies only what matters to it.
//!
//! A service's configuration is a short text ("" by default), and so is a volume's or network's; the digest is computed
//! from it. `shop` is app 1, and its uuid is `shop`.

use std::collections::BTreeMap;
use std::time::Duration;

use device_types::Moment;
use model::{
    AppId, AppUuid, ContainerState, CurrentRelease, CurrentService, DesiredApp, DesiredHost,
    DesiredNetwork, DesiredOs, DesiredService, DesiredState, DesiredVolume, EngineKind, HostPart,
    Image, ImageId, ImageRef, Mount, NetworkAttachment, NetworkConfig, NetworkMode, PortMapping,
    Protocol, ReleaseId, RestartPolicy, ServiceConfig, ServiceId, ServiceKey, UpdateStrategy,
    VolumeConfig,
};
use plan::{
    CurrentComponent, CurrentState, EngineHealth, Failure, OsAttempt, OsPhase, OsStatus, OsVerdict,
    Subject,
};

pub(crate) use EngineKind::{Docker, Wasm};

pub(crate) fn key(app: &str, service: &str) -> ServiceKey {
    ServiceKey {
        app: app.parse().unwrap(),
        service: service.parse().unwrap(),
    }
}

pub(crate) fn image_ref(text: &str) -> ImageRef {
    ImageRef::normalized(text).unwrap()
}

/// Returns the number of an app: `shop` is 1, and every other app 2.
fn app_id(app: &str) -> AppId {
    AppId(if app == "shop" { 1 } else { 2 })
}

/// Returns everything that makes the containers of two services differ, as one text.
fn digest(config: &ServiceConfig, extra: &str) -> String {
    format!(
        "{extra}|{}|{:?}|{:?}|{:?}|{:?}",
        config.image, config.ports, config.mounts, config.networks, config.network_mode
    )
}

/// A desired service; every method changes one thing.
#[derive(Debug, Clone)]
pub(crate) struct Service(pub(crate) DesiredService);

/// Returns `service("shop", "web", "web:1")`: release 1, commit `c1`, running.
pub(crate) fn service(app: &str, name: &str, image: &str) -> Service {
    let service = DesiredService {
        key: key(app, name),
        app_id: app_id(app),
        id: ServiceId(1),
        image_id: ImageId(1),
        release: ReleaseId(1),
        commit: "c1".parse().unwrap(),
        running: true,
        strategy: UpdateStrategy::DownloadThenKill,
        handover_timeout: Duration::from_secs(60),
        requires_reboot: false,
        depends_on: Vec::new(),
        config: config(image),
        digest: String::new(),
        init_environment: BTreeMap::new(),
    };
    Service(service).with("")
}

impl Service {
    /// Sets any other part of the configuration.
    pub(crate) fn with(mut self, config: &str) -> Self {
        self.0.config.hostname = config.to_owned();
        self.sealed()
    }

    pub(crate) fn after(mut self, services: &[&str]) -> Self {
        self.0.depends_on = services.iter().map(|name| name.parse().unwrap()).collect();
        self
    }

    pub(crate) fn stopped(mut self) -> Self {
        self.0.running = false;
        self
    }

    pub(crate) fn release(mut self, number: u64) -> Self {
        self.0.release = ReleaseId(number);
        self.0.image_id = ImageId(number);
        self.0.commit = format!("c{number}").parse().unwrap();
        self
    }

    pub(crate) fn strategy(mut self, strategy: UpdateStrategy) -> Self {
        self.0.strategy = strategy;
        self
    }

    pub(crate) fn requires_reboot(mut self) -> Self {
        self.0.requires_reboot = true;
        self
    }

    pub(crate) fn volume(mut self, name: &str) -> Self {
        self.0.config.mounts.push(Mount::Volume {
            source: format!("{}_{name}", self.0.app_id),
            target: format!("/{name}"),
            read_only: false,
        });
        self.sealed()
    }

    pub(crate) fn network(mut self, name: &str) -> Self {
        let network = format!("{}_{name}", self.0.key.app);
        self.0
            .config
            .networks
            .insert(network, NetworkAttachment::default());
        self.sealed()
    }

    /// Requests the device's API.
    pub(crate) fn with_api(mut self) -> Self {
        self.0
            .config
            .networks
            .insert("supervisor0".to_owned(), NetworkAttachment::default());
        self.sealed()
    }

    pub(crate) fn port(mut self, port: u16) -> Self {
        self.0.config.ports.push(PortMapping {
            host_ip: String::new(),
            host_port: Some(port),
            container_port: port,
            protocol: Protocol::Tcp,
        });
        self.sealed()
    }

    pub(crate) fn in_network_of(mut self, service: &str) -> Self {
        self.0.config.network_mode = NetworkMode::Service(service.parse().unwrap());
        self.sealed()
    }

    fn sealed(mut self) -> Self {
        self.0.digest = digest(&self.0.config, &self.0.config.hostname);
        self
    }
}

fn config(image: &str) -> ServiceConfig {
    ServiceConfig {
        image: image_ref(image),
        command: None,
        entrypoint: None,
        environment: BTreeMap::new(),
        labels: BTreeMap::new(),
        restart: RestartPolicy::Always,
        network_mode: NetworkMode::Bridge,
        networks: BTreeMap::new(),
        ports: Vec::new(),
        mounts: Vec::new(),
        tmpfs: BTreeMap::new(),
        devices: Vec::new(),
        healthcheck: None,
        mem_limit: 0,
        mem_reservation: 0,
        shm_size: 0,
        stop_grace_period: 10,
        stop_signal: None,
        ulimits: BTreeMap::new(),
        sysctls: BTreeMap::new(),
        dns: Vec::new(),
        dns_search: Vec::new(),
        dns_opt: Vec::new(),
        cap_add: Vec::new(),
        cap_drop: Vec::new(),
        extra_hosts: Vec::new(),
        group_add: Vec::new(),
        security_opt: Vec::new(),
        nano_cpus: 0,
        cpu_shares: 0,
        cpu_quota: 0,
        oom_score_adj: 0,
        cpuset: String::new(),
        domainname: String::new(),
        hostname: String::new(),
        mac_address: String::new(),
        pid: String::new(),
        userns_mode: String::new(),
        cgroup_parent: String::new(),
        user: String::new(),
        working_dir: String::new(),
        ipc: String::new(),
        pids_limit: 0,
        privileged: false,
        read_only: false,
        oom_kill_disable: false,
        init: None,
        tty: false,
        gpu: false,
    }
}

/// The desired state.
#[derive(Debug, Clone, Default)]
pub(crate) struct Target(pub(crate) DesiredState);

pub(crate) fn target() -> Target {
    Target::default()
}

impl Target {
    fn entry(&mut self, app: &str) -> &mut DesiredApp {
        let uuid: AppUuid = app.parse().unwrap();
        self.0.apps.entry(uuid.clone()).or_insert(DesiredApp {
            id: app_id(app),
            uuid,
            name: app.to_owned(),
            commit: Some("c1".parse().unwrap()),
            release: Some(ReleaseId(1)),
            not_ours: false,
            rejected: false,
            services: BTreeMap::new(),
            volumes: BTreeMap::new(),
            networks: BTreeMap::new(),
        })
    }

    /// Includes the host in the target.
    pub(crate) fn configures_host(mut self) -> Self {
        self.0.host = Some(DesiredHost::default());
        self
    }

    /// Includes the host, without a version of the operating system.
    pub(crate) fn without_os(mut self) -> Self {
        self.0.host = Some(DesiredHost::default());
        self
    }

    /// Sets the version of the operating system.
    pub(crate) fn os(mut self, version: &str) -> Self {
        let host = self.0.host.get_or_insert_default();
        host.os = Some(DesiredOs {
            version: version.parse().unwrap(),
            bundle: format!("https://os.example/{version}").parse().unwrap(),
        });
        self
    }

    /// Adds the app without services, with release `release`.
    pub(crate) fn app(mut self, app: &str, release: u64) -> Self {
        self.entry(app).commit = Some(format!("c{release}").parse().unwrap());
        self
    }

    /// Adds the service, and gives its app the commit of its release.
    pub(crate) fn service(mut self, service: Service) -> Self {
        let service = service.0;
        let app = self.entry(service.key.app.as_str());
        app.commit = Some(service.commit.clone());
        app.services.insert(service.key.service.clone(), service);
        self
    }

    pub(crate) fn volume(mut self, app: &str, name: &str, config: &str) -> Self {
        let volume = DesiredVolume {
            engine_name: format!("{}_{name}", app_id(app)),
            config: VolumeConfig::default(),
            digest: config.to_owned(),
        };
        self.entry(app).volumes.insert(name.to_owned(), volume);
        self
    }

    pub(crate) fn network(mut self, app: &str, name: &str, config: &str) -> Self {
        let network = DesiredNetwork {
            engine_name: format!("{app}_{name}"),
            config: NetworkConfig::default(),
            digest: config.to_owned(),
        };
        self.entry(app).networks.insert(name.to_owned(), network);
        self
    }

    pub(crate) fn rejected(mut self, app: &str) -> Self {
        self.entry(app).rejected = true;
        self
    }

    pub(crate) fn not_ours(mut self, app: &str) -> Self {
        self.entry(app).not_ours = true;
        self
    }
}

/// The current state. Containers are numbered in the order in which they are added, starting with the oldest.
#[derive(Debug, Clone)]
pub(crate) struct Device(pub(crate) CurrentState);

/// Returns a device with only Docker, and nothing on it.
pub(crate) fn device() -> Device {
    Device(CurrentState {
        engines: BTreeMap::from([(Docker, EngineHealth::Answers)]),
        default_engine: Some(Docker),
        ..CurrentState::default()
    })
}

impl Device {
    pub(crate) fn with_wasm(mut self) -> Self {
        self.0.engines.insert(Wasm, EngineHealth::Answers);
        self
    }

    pub(crate) fn silent(mut self, engine: EngineKind) -> Self {
        let why = "connection refused".to_owned();
        self.0.engines.insert(engine, EngineHealth::Silent(why));
        self
    }

    /// Adds the image, with the id `id:<reference>`.
    pub(crate) fn image(self, reference: &str) -> Self {
        self.image_on(Docker, reference)
    }

    pub(crate) fn image_on(mut self, engine: EngineKind, reference: &str) -> Self {
        let reference = image_ref(reference);
        self.0.images.push(Image {
            engine,
            id: format!("id:{reference}").parse().unwrap(),
            references: vec![reference],
            size: 0,
        });
        self
    }

    /// Adds an image whose reference names another image than when its containers were created.
    pub(crate) fn moved_image(mut self, reference: &str) -> Self {
        let reference = image_ref(reference);
        self.0.images.push(Image {
            engine: Docker,
            id: format!("new-id:{reference}").parse().unwrap(),
            references: vec![reference],
            size: 0,
        });
        self
    }

    /// Pulled by the supervisor.
    pub(crate) fn recorded(mut self, reference: &str) -> Self {
        self.0.recorded_images.insert(image_ref(reference));
        self
    }

    pub(crate) fn running(self, service: Service) -> Self {
        self.container(service, ContainerState::Running)
    }

    /// Adds a container as `service` describes it, on Docker, without its image.
    pub(crate) fn container(self, service: Service, state: ContainerState) -> Self {
        self.container_on(Docker, service, state)
    }

    pub(crate) fn container_on(
        mut self,
        engine: EngineKind,
        service: Service,
        state: ContainerState,
    ) -> Self {
        let service = service.0;
        let number = self.0.services.len() + 1;
        self.0.services.push(CurrentService {
            engine,
            container: format!("id{number}").parse().unwrap(),
            name: service.container_name(),
            image: service.config.image.as_str().to_owned(),
            engine_image: format!("id:{}", service.config.image).parse().unwrap(),
            state,
            waits_in_boot: None,
            stop_grace: Duration::from_secs(10),
            depends_on: service.depends_on.iter().cloned().collect(),
            digest: Some(service.digest.clone()),
            created_at_ms: i64::try_from(number).unwrap() * 1000,
            key: service.key,
            app_id: service.app_id,
            id: service.id,
            device: None,
            release: Some(CurrentRelease {
                image_id: service.image_id,
                id: service.release,
                commit: Some(service.commit),
            }),
            exit_code: None,
            health: None,
        });
        self
    }

    /// The newest container shares the network stack of `container`.
    pub(crate) fn joined_to(mut self, container: &str) -> Self {
        let newest = self.0.services.last().unwrap().container.clone();
        self.0
            .network_containers
            .insert(newest, container.parse().unwrap());
        self
    }

    /// The API's network is `supervisor0`.
    pub(crate) fn with_api_network(mut self) -> Self {
        self.0.api_network = Some(DesiredNetwork {
            engine_name: "supervisor0".to_owned(),
            config: NetworkConfig::default(),
            digest: "api".to_owned(),
        });
        self
    }

    /// The API's network exists.
    pub(crate) fn api_network(mut self) -> Self {
        self.0.networks.push(CurrentComponent {
            engine: Docker,
            name: "supervisor0".to_owned(),
            app: None,
            digest: None,
        });
        self
    }

    pub(crate) fn volume(self, app: &str, name: &str, config: &str) -> Self {
        self.volume_on(Docker, app, name, config)
    }

    pub(crate) fn volume_on(
        mut self,
        engine: EngineKind,
        app: &str,
        name: &str,
        config: &str,
    ) -> Self {
        let name = format!("{}_{name}", app_id(app));
        self.0.volumes.push(component(engine, app, name, config));
        self
    }

    pub(crate) fn network(self, app: &str, name: &str, config: &str) -> Self {
        self.network_on(Docker, app, name, config)
    }

    pub(crate) fn network_on(
        mut self,
        engine: EngineKind,
        app: &str,
        name: &str,
        config: &str,
    ) -> Self {
        let name = format!("{app}_{name}");
        self.0.networks.push(component(engine, app, name, config));
        self
    }

    pub(crate) fn commit(mut self, app: &str, commit: &str) -> Self {
        let commit = commit.parse().unwrap();
        self.0.commits.insert(app.parse().unwrap(), commit);
        self
    }

    /// An action restores the app to its previous state.
    pub(crate) fn restored(mut self, app: &str) -> Self {
        self.0.restored.insert(app.parse().unwrap());
        self
    }

    pub(crate) fn locked(mut self, app: &str) -> Self {
        self.0.locks.insert(app.parse().unwrap());
        self
    }

    pub(crate) fn local_mode(mut self) -> Self {
        self.0.local_mode = true;
        self
    }

    pub(crate) fn busy(mut self, subject: Subject) -> Self {
        self.0.busy.insert(subject);
        self
    }

    /// Stopped by the supervisor.
    pub(crate) fn stopped(mut self, container: &str) -> Self {
        self.0.stopped.insert(container.parse().unwrap());
        self
    }

    /// The host is in this boot.
    pub(crate) fn boot(mut self, boot: &str) -> Self {
        self.0.host.boot = Some(boot.parse().unwrap());
        self
    }

    /// The newest container was created in this boot, to be started in the next.
    pub(crate) fn waits_in_boot(mut self, boot: &str) -> Self {
        let newest = self.0.services.last_mut().unwrap();
        newest.waits_in_boot = Some(boot.parse().unwrap());
        self
    }

    /// The part of the host differs from the target.
    pub(crate) fn differs(mut self, part: HostPart) -> Self {
        self.0.host.differs.insert(part);
        self
    }

    pub(crate) fn reboot_due(mut self) -> Self {
        self.0.host.reboot_due = true;
        self
    }

    /// Sets the status that the provider of the operating system reports.
    pub(crate) fn os(mut self, running: &str, staged: Option<&str>) -> Self {
        self.0.os.status = Some(OsStatus {
            running: running.parse().unwrap(),
            staged: staged.map(|version| version.parse().unwrap()),
            committed: true,
            installing: None,
        });
        self
    }

    /// A version of the operating system is being installed.
    pub(crate) fn installing_os(mut self, percent: u8) -> Self {
        self.0.os.status.as_mut().unwrap().installing = Some(percent);
        self
    }

    /// A version of the operating system was activated, or rolled back, in this boot.
    pub(crate) fn os_attempt(mut self, version: &str, boot: &str, phase: OsPhase) -> Self {
        self.0.os.attempt = Some(OsAttempt {
            version: version.parse().unwrap(),
            boot: Some(boot.parse().unwrap()),
            phase,
        });
        self
    }

    /// The version that runs is healthy.
    pub(crate) fn os_is_healthy(mut self) -> Self {
        self.0.os.verdict = OsVerdict::Healthy;
        self
    }

    /// A version is not tried again.
    pub(crate) fn os_rejected(mut self, version: &str) -> Self {
        self.0.os.rejected.insert(version.parse().unwrap());
        self
    }

    /// The number of reboots for the current target.
    pub(crate) fn reboots(mut self, times: u32) -> Self {
        self.0.host.reboots = times;
        self
    }

    /// Somebody restarts the app.
    pub(crate) fn acting(mut self, app: &str) -> Self {
        self.0.host.acting.insert(app.parse().unwrap());
        self
    }

    /// The subject failed, and is held back.
    pub(crate) fn failed(mut self, subject: Subject, reason: &str) -> Self {
        let failure = Failure {
            reason: reason.to_owned(),
            held: true,
            retry_at: Moment(0),
            failures: 1,
            postponed_by: None,
            stuck_container: None,
        };
        self.0.failed.insert(subject, failure);
        self
    }

    /// The engine keeps refusing to start this container of the service.
    pub(crate) fn stuck(mut self, service: &Subject, container: &str) -> Self {
        self = self.failed(service.clone(), "it already exists");
        if let Some(failure) = self.0.failed.get_mut(service) {
            failure.stuck_container = Some(container.parse().unwrap());
        }
        self
    }
}

fn component(engine: EngineKind, app: &str, name: String, config: &str) -> CurrentComponent {
    CurrentComponent {
        engine,
        name,
        app: Some(app.parse().unwrap()),
        digest: Some(config.to_owned()),
    }
}
