//! `supervisor run`: brings the parts together, serves until a signal comes, and takes them apart again.
//! Services outlive all of it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use api::{Events, Listener, Listening};
use engine::Scope;
use model::compose::{DeviceFacts as ServiceFacts, HostFacts};
use os::Firewall;
use plugin_protocol::GuestRuntime;
use plugin_worker::{WorkerConfig, WorkerRuntime};
use plugins::{ConfinementRule, HostServices, PluginsConfig};
use reconcile::{Limits, Moments, Reconciler, ReconcilerConfig};
use store::{OpenStore, Store};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::address::{self, AddressFile};
use crate::boots::Boots;
use crate::cloud::{self, Membership};
use crate::configuration::{Configuration, HostActions};
use crate::device::{RunningDevice, UNNAMED};
use crate::endpoints::{PluginData, PluginEndpoints, reserved_routes};
use crate::facts::{Board, DeviceFacts, host_name, memory_of_board};
use crate::firewall::{FirewallSettings, FirewallState};
use crate::host::Host;
use crate::host_name::HostName;
use crate::host_settings::HostSettings;
use crate::listen_address::openness;
use crate::power::Power;
use crate::registry_account;
use crate::run_folder::RunFolder;
use crate::variables::Variables;
use crate::walls::{self, Walls};
use crate::{engines, listeners, systemd, target_policy};

/// Threads that run tasks. A device has other things to do, and each thread costs memory.
const WORKERS: usize = 2;
/// Threads for what blocks: the store, files. They are there when they are needed, mostly none, and what waits on one
/// keeps no other from working. Names are looked up elsewhere (`names`), since name servers make them wait longest.
const BLOCKING: usize = 64;

/// How long what blocks may take to end before the device is started anew in the same process.
const SETTLES_WITHIN: Duration = Duration::from_secs(10);

/// How a run has ended.
enum RunOutcome {
    /// Somebody asked for it.
    Stopped,
    /// The device is another one now: all that bears its uuid is to be made anew.
    BeginsAgain,
}

/// Runs until SIGTERM or SIGINT.
///
/// # Errors
/// Where the device cannot be started: another supervisor has the state folder, an address is taken, an
/// engine cannot be set up.
pub(crate) fn run(configuration: Configuration) -> Result<()> {
    loop {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(WORKERS)
            .max_blocking_threads(blocking_threads()?)
            .thread_name("supervisor")
            .enable_all()
            .build()
            .context("failed to start threads")?;
        let outcome = runtime.block_on(device(&configuration));
        if matches!(outcome, Ok(RunOutcome::BeginsAgain)) {
            // What holds the state folder has to let go of it.
            runtime.shutdown_timeout(SETTLES_WITHIN);
            continue;
        }
        // What still blocks then has nothing left to finish.
        runtime.shutdown_background();
        return outcome.map(drop);
    }
}

async fn device(configuration: &Configuration) -> Result<RunOutcome> {
    // First of all, since a device is told to stop at any moment.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;

    let run_folder = RunFolder::open(&configuration.host_root, &configuration.branding);
    // A broken database is set aside and said so by the store itself, as is a disk that takes no writes.
    let OpenStore { mut store, .. } =
        Store::open_or_copy(&configuration.state_dir, run_folder.folder())?;
    address::forget(&configuration.state_dir);
    let mut sockets = listeners::open(&configuration.listen).await?;
    let addresses = addresses(&sockets)?;
    for sentence in &configuration.without_effect {
        tracing::warn!("{sentence}");
    }

    let host = Host::new(configuration);
    host.announce();
    // Before anything bears the device's uuid.
    let membership = Membership::find(
        &host.config_json,
        &configuration.branding,
        configuration.plain_http(),
        &mut store,
    )?;
    let stopping = CancellationToken::new();
    let begin_again = CancellationToken::new();
    let around = StartContext {
        host: &host,
        membership,
        run_folder: &run_folder,
        addresses: &addresses,
        begin_again: &begin_again,
        stopping: &stopping,
    };
    let parts = Parts::start(configuration, &store, around).await?;
    if parts.has_docker {
        sockets.extend(listeners::on_gateway(&addresses));
    }
    let app = api::App::new(
        api::Settings {
            branding: configuration.branding.clone(),
            host_names: configuration.host_names.clone(),
            service_keys: configuration.service_keys,
            return_memory: Some(heap::return_unused),
        },
        parts.device.clone(),
        Arc::new(parts.endpoints.clone()),
        store,
        stopping.clone(),
    );
    let (device, asked, stops) = (parts.device.clone(), app.clone(), stopping.clone());
    let tunnel = tokio::spawn(async move {
        let cloud = &device.cloud;
        cloud.keep_tunnel(asked, &device.reconciler, stops).await;
    });
    for (listener, address) in sockets.iter().zip(&addresses) {
        if let Some(openness) = openness(*address, listener.keyless) {
            tracing::warn!("{openness}");
        }
    }
    let listening = parts.device.power.listening.clone();
    let serving = tokio::spawn(api::serve(app, sockets, listening));
    let address_file = AddressFile::write(&configuration.state_dir, &addresses);
    let _address_file = address_file
        // The API is there all the same, at the address that the log names.
        .inspect_err(|error| tracing::error!("{error:#}"))
        .ok();
    tracing::info!("the API listens on {}", listed(&addresses));
    systemd::ready();

    let reconciler = &parts.device.reconciler;
    let (received, ending) = tokio::select! {
        _ = terminate.recv() => ("SIGTERM", RunOutcome::Stopped),
        _ = interrupt.recv() => ("SIGINT", RunOutcome::Stopped),
        () = begin_again.cancelled() => ("the device has a new identity", RunOutcome::BeginsAgain),
        never = systemd::watchdog(|| reconciler.answers()) => match never {},
    };
    tracing::info!("{received}: the supervisor stops, its services continue");
    if matches!(ending, RunOutcome::Stopped) {
        systemd::stopping();
    }
    stopping.cancel();
    // A request under way may still wait for the loop, which ends what it has begun.
    let (served, tunnel, ()) = tokio::join!(serving, tunnel, reconciler.shutdown());
    tunnel.context("the cloud tunnel failed during shutdown")?;
    served.context("the API failed during shutdown")?;
    parts.endpoints.shutdown().await;
    parts.device.walls.plugins.stop().await;
    parts
        .firewall_ends
        .await
        .context("the firewall failed during shutdown")?;
    parts.host_settings.detach();
    Ok(ending)
}

/// What works behind the API.
struct Parts {
    device: Arc<RunningDevice>,
    endpoints: PluginEndpoints,
    host_settings: HostSettings,
    has_docker: bool,
    /// Ends once the host's firewall is as it was before.
    firewall_ends: JoinHandle<()>,
}

/// What the parts are started with beside configuration and store.
struct StartContext<'a> {
    host: &'a Host,
    membership: Membership,
    run_folder: &'a RunFolder,
    addresses: &'a [SocketAddr],
    begin_again: &'a CancellationToken,
    stopping: &'a CancellationToken,
}

impl Parts {
    async fn start(
        configuration: &Configuration,
        store: &Store,
        around: StartContext<'_>,
    ) -> Result<Self> {
        let StartContext {
            host,
            membership,
            run_folder,
            addresses,
            begin_again,
            stopping,
        } = around;
        let api_port = addresses.first().map_or(0, SocketAddr::port);
        let branding = &configuration.branding;
        let board = Board::read(&configuration.device_type, &configuration.host_root);

        let rule = walls::rule(configuration);
        let cache = walls::cache(configuration, &configuration.state_dir, &rule)?;
        let scope = Scope {
            device: store.device_uuid().clone(),
            former: store.former_uuids()?,
            exclusive: configuration.exclusive,
            branding: branding.clone(),
        };
        let engines =
            engines::choose(configuration, scope, cache.clone(), rule.clone(), addresses).await?;
        let engines = match registry_account::of(&host.config_json, store, membership.access()) {
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
        let events = Events::default();
        let power = Power {
            os: host.os.clone(),
            host_root: configuration.host_root.clone(),
            rehearses: configuration.host_actions == HostActions::Rehearse,
            boots: boots.clone(),
            events: events.clone(),
            listening: Listening::default(),
            agreed: Arc::default(),
        };
        let host_settings = HostSettings::new(boots, host.config_json.clone(), power.clone());
        let reconciler = Reconciler::start(ReconcilerConfig {
            engines,
            store: store.clone(),
            facts: service_facts(configuration, store, &board, api_port, host_facts),
            host_root: configuration.host_root.clone(),
            host: Arc::new(host_settings.clone()),
            managed: membership.managed,
            on_event: {
                let events = events.clone();
                Arc::new(move |audience, event| events.publish(audience, event))
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
                    HostActions::Dbus => Firewall::of_kernel("nft"),
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
        let cloud = membership.follow(cloud::CloudContext {
            store,
            config: &host.config_json,
            reconciler: &reconciler,
            board: &board,
            facts: &facts,
            host_settings: &host_settings,
            branding,
            host_root: &configuration.host_root,
            reported: run_folder.reported(),
            state_dir: &configuration.state_dir,
            allow_unpinned: configuration.allow_unpinned,
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
        });
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
            },
        ));
        host_settings.attach(&device.reconciler, &endpoints);
        Ok(Parts {
            device,
            endpoints,
            host_settings,
            has_docker,
            firewall_ends,
        })
    }
}

/// The moment at which a test wants this process killed.
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

/// With few of them a test sees what waits where it must not.
#[cfg(feature = "abort-at")]
fn blocking_threads() -> Result<usize> {
    let variable = "SUPERVISOR_TEST_BLOCKING_THREADS";
    match std::env::var(variable) {
        Ok(number) => number.parse().context(variable),
        Err(_) => Ok(BLOCKING),
    }
}

#[cfg(not(feature = "abort-at"))]
fn blocking_threads() -> Result<usize> {
    Ok(BLOCKING)
}

/// Nobody is told of moments: only the program that tests run is built with that.
#[cfg(not(feature = "abort-at"))]
fn moments() -> Result<Moments> {
    Ok(Moments::default())
}

/// Where plugins run: in a process of their own, without rights. Runs in a tokio runtime.
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

/// What the plugins are started with, here and for `supervisor plugins list`.
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

/// What services are told of the device; asked for anew for each target.
fn service_facts(
    configuration: &Configuration,
    store: &Store,
    board: &Board,
    api_port: u16,
    host: HostFacts,
) -> Arc<dyn Fn() -> ServiceFacts + Send + Sync> {
    let facts = ServiceFacts {
        uuid: store.device_uuid().clone(),
        // Until a target names the device.
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

fn addresses(listeners: &[Listener]) -> Result<Vec<SocketAddr>> {
    let addresses: std::io::Result<_> = listeners.iter().map(|l| l.socket.local_addr()).collect();
    addresses.context("failed to read the addresses of the API's own sockets")
}

fn listed(addresses: &[SocketAddr]) -> String {
    let urls: Vec<String> = addresses.iter().map(|a| format!("http://{a}")).collect();
    urls.join(", ")
}
