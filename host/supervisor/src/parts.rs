//! Starts the parts of a device that are behind its API.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Result;
use api::{Events, ListenSwitch};
use engine::Ownership;
use model::compose::{DeviceFacts as ServiceFacts, HostFacts};
use os::{Firewall, KernelGpio, KernelI2c};
use plugin_protocol::GuestRuntime;
use plugin_worker::{WorkerConfig, WorkerRuntime};
use plugins::{ConfinementRule, HostServices, PluginsConfig};
use reconcile::{Limits, Moments, Reconciler, ReconcilerConfig};
use store::Store;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::boots::Boots;
use crate::cloud::{self, Membership};
use crate::configuration::Configuration;
use crate::device::{RunningDevice, UNNAMED};
use crate::endpoints::{PluginData, PluginEndpoints, reserved_routes};
use crate::facts::{Board, DeviceFacts, host_name, memory_of_board};
use crate::firewall::{FirewallSettings, FirewallState};
use crate::host::Host;
use crate::host_name::HostName;
use crate::host_settings::HostSettings;
use crate::plugin_api::PluginApi;
use crate::plugin_events::{PluginEvents, is_first_start};
use crate::plugin_fields::PluginFields;
use crate::plugin_http::PluginHttp;
use crate::plugins_slot::PluginsSlot;
use crate::power::Power;
use crate::run_folder::RunFolder;
use crate::settings::HostActions;
use crate::variables::Variables;
use crate::walls::{self, Walls};
use crate::{engines, listeners, registry_account, target_policy};

/// The folder of the device files of hardware for plugins.
const DEVICES: &str = "/dev";

/// The parts behind the API.
pub(crate) struct Parts {
    pub(crate) device: Arc<RunningDevice>,
    pub(crate) endpoints: PluginEndpoints,
    pub(crate) host_settings: HostSettings,
    pub(crate) plugin_api: PluginApi,
    pub(crate) plugins_slot: PluginsSlot,
    pub(crate) has_docker: bool,
    /// Ends once the host's firewall is restored.
    pub(crate) firewall_ends: JoinHandle<()>,
}

/// The context for starting the parts, in addition to configuration and store.
pub(crate) struct StartContext<'a> {
    pub(crate) host: &'a Host,
    pub(crate) membership: Membership,
    pub(crate) run_folder: &'a RunFolder,
    pub(crate) addresses: &'a [SocketAddr],
    pub(crate) begin_again: &'a CancellationToken,
    pub(crate) stopping: &'a CancellationToken,
}

impl Parts {
    pub(crate) async fn start(
        configuration: &Configuration,
        store: &Store,
        context: StartContext<'_>,
    ) -> Result<Self> {
        let StartContext {
            host,
            membership,
            run_folder,
            addresses,
            begin_again,
            stopping,
        } = context;
        let api_port = addresses.first().map_or(0, SocketAddr::port);
        let branding = &configuration.branding;
        let board = Board::read(&configuration.device_type, &configuration.host_root);

        let rule = walls::rule(configuration);
        let cache = walls::cache(configuration, &configuration.state_dir, &rule)?;
        let ownership = Ownership {
            device: store.device_uuid().clone(),
            former: store.former_uuids()?,
            exclusive: configuration.exclusive,
            branding: branding.clone(),
        };
        let engines = engines::choose(
            configuration,
            ownership,
            cache.clone(),
            rule.clone(),
            addresses,
        )
        .await?;
        let engines = match registry_account::read(&host.config_json, store, membership.access()) {
            Some((registry, account)) => engines.with_account(registry, account),
            None => engines,
        };
        let has_docker = engines::has_docker(&engines);

        let plugin_runtime = plugin_runtime(configuration, rule.clone());
        let walls = Walls {
            rule,
            plugins: plugin_runtime.clone(),
            cache: cache.clone(),
            engines: engines.clone(),
        };
        let host_facts = HostFacts {
            engine_socket: engines::docker_socket(configuration, &engines),
            board_revision: board.revision.clone(),
            os_build: board.os_build.clone(),
            cloud: membership.access(),
            own_app: configuration.own_app.clone(),
            ..HostFacts::default()
        };
        let boots = Boots::new(&configuration.host_root, run_folder.reboot_mark());
        let boots = Arc::new(boots);
        let is_first_start =
            is_first_start(run_folder.start_mark().as_ref(), boots.current().as_ref());
        let events = Events::default();
        let plugins_slot = PluginsSlot::default();
        let plugin_events = PluginEvents(plugins_slot.clone());
        let power = Power {
            os: host.os.clone(),
            host_root: configuration.host_root.clone(),
            rehearses: configuration.host_actions == HostActions::Rehearse,
            boots: boots.clone(),
            events: events.clone(),
            listening: ListenSwitch::default(),
            agreed: Arc::default(),
        };
        let host_settings = HostSettings::new(
            boots,
            host.config_json.clone(),
            power.clone(),
            configuration.allow_plain,
        );
        let reconciler = Reconciler::start(ReconcilerConfig {
            engines,
            store: store.clone(),
            facts: service_facts(configuration, store, &board, api_port, host_facts),
            host_root: configuration.host_root.clone(),
            host: Arc::new(host_settings.clone()),
            managed: membership.managed,
            on_event: {
                let (events, plugin_events) = (events.clone(), plugin_events.clone());
                Arc::new(move |audience, event| {
                    plugin_events.publish(&event);
                    events.publish(audience, event);
                })
            },
            offers: board.offers(branding),
            target_policy: target_policy::reader(configuration),
            limits: Limits::default(),
            moments: moments()?,
        })?;
        let vpn = configuration.vpn_unit.clone();
        let vpn = Some(vpn).filter(|_| membership.managed);
        let variables = Variables::new(host.os.clone(), vpn, run_folder.variables());
        variables.follow(&reconciler, stopping);
        let firewall = FirewallState::default();
        let firewall_ends = firewall.follow(
            FirewallSettings {
                firewall: match configuration.host_actions {
                    HostActions::Dbus => Firewall::from_nft("nft"),
                    HostActions::Rehearse => Firewall::rehearsal(),
                },
                api_port,
                network: branding.network.clone(),
                tcp: configuration.firewall_ports.clone(),
                service_users: configuration.service_users.ends(),
            },
            reconciler.effective_settings(),
            stopping,
        );
        let facts = Arc::new(DeviceFacts::new(
            api_port,
            &board,
            branding.network.clone(),
            has_docker.then(listeners::gateway).flatten(),
        ));
        let plugin_fields = PluginFields(plugins_slot.clone());
        let cloud = membership.follow(cloud::CloudContext {
            configuration,
            host,
            store,
            reconciler: &reconciler,
            board: &board,
            facts: &facts,
            host_settings: &host_settings,
            plugin_fields: &plugin_fields,
            reported: run_folder.reported(),
            begin_again,
            stop: stopping,
        })?;
        let device = Arc::new(RunningDevice {
            reconciler,
            events,
            cloud,
            facts,
            board,
            uuid: store.device_uuid().clone(),
            branding: branding.clone(),
            power,
            store: store.clone(),
            firewall,
            walls,
            is_first_start,
        });
        let plugin_api = PluginApi::default();
        let endpoints = PluginEndpoints::start(plugins_config(
            configuration,
            cache,
            plugin_runtime,
            HostServices {
                data: Arc::new(PluginData::new(store.clone())),
                device: device.clone(),
                locks: device.clone(),
                host_name: Arc::new(HostName::new(&configuration.host_root, host)),
                cloud: device.clone(),
                os: host.os.clone(),
                journal: host.journal.clone(),
                http: Arc::new(PluginHttp::new(&branding.network)),
                api: Arc::new(plugin_api.clone()),
                gpio: Arc::new(KernelGpio::new(DEVICES)),
                i2c: Arc::new(KernelI2c::new(DEVICES)),
            },
        ));
        host_settings.attach(&device.reconciler, &endpoints);
        plugins_slot.attach(&endpoints);
        if let Some(connection) = device.cloud.connection() {
            plugin_events.follow_connection(connection, stopping);
        }
        Ok(Parts {
            device,
            endpoints,
            host_settings,
            plugin_api,
            plugins_slot,
            has_docker,
            firewall_ends,
        })
    }
}

/// Returns the moment at which a test wants this process killed.
#[cfg(feature = "abort-at")]
fn moments() -> Result<Moments> {
    let variable = "SUPERVISOR_TEST_ABORT_AT";
    let Some(value) = std::env::var_os(variable) else {
        return Ok(Moments::default());
    };
    match value.to_string_lossy().parse::<reconcile::AbortAt>() {
        Ok(moment) => Ok(moment.into()),
        Err(error) => Err(anyhow::anyhow!("{variable}: {error}")),
    }
}

/// Returns no moments: only the program for tests is built with that feature.
#[cfg(not(feature = "abort-at"))]
fn moments() -> Result<Moments> {
    Ok(Moments::default())
}

/// Returns the runtime of plugins: their own process, without privileges. Runs in a tokio runtime.
pub(crate) fn plugin_runtime(
    configuration: &Configuration,
    rule: Arc<ConfinementRule>,
) -> Arc<WorkerRuntime> {
    Arc::new(WorkerRuntime::start(WorkerConfig {
        program: configuration.wasm_program.clone(),
        slots: plugins::DEFAULT_SLOTS,
        memory: plugins::memory_of_board(memory_of_board()),
        control_groups: format!("{}-plugins", configuration.branding.folder).into(),
        requires_confinement: Arc::new(move || rule.is_required()),
    }))
}

/// Returns the configuration of the plugins, here and for `supervisor plugins list`.
pub(crate) fn plugins_config(
    configuration: &Configuration,
    cache: compiled_code::Cache,
    runtime: Arc<dyn GuestRuntime>,
    services: HostServices,
) -> PluginsConfig {
    PluginsConfig {
        runtime,
        plugin_dirs: configuration.plugin_dirs.clone(),
        policy: configuration.policy.clone(),
        stock_plugins: configuration.stock_plugins.clone(),
        allow_unpinned: configuration.allow_unpinned,
        cache,
        state_dir: configuration.state_dir.clone(),
        host_root: configuration.host_root.clone(),
        plugin_config: configuration.plugins.clone(),
        services,
        core_routes: reserved_routes(),
        board_memory: memory_of_board(),
    }
}

/// Returns the facts about the device for services; called again for each target.
fn service_facts(
    configuration: &Configuration,
    store: &Store,
    board: &Board,
    api_port: u16,
    host: HostFacts,
) -> Arc<dyn Fn() -> ServiceFacts + Send + Sync> {
    let facts = ServiceFacts {
        uuid: store.device_uuid().clone(),
        // Used until a target names the device.
        name: UNNAMED.to_owned(),
        hostname: host_name(),
        device_type: board.device_type.clone(),
        arch: board.arch.clone(),
        os_version: board.os_version.clone().unwrap_or_default(),
        host_root: configuration.host_root.to_string_lossy().into_owned(),
        api_port,
        branding: configuration.branding.clone(),
        host,
    };
    let root = configuration.host_root.clone();
    Arc::new(move || {
        let mut facts = facts.clone();
        facts.host.has_kernel_modules = root.join("lib/modules").is_dir();
        facts.host.has_firmware = root.join("lib/firmware").is_dir();
        facts
    })
}
