//! The life of the program, from start to end.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use cloud_core::auth::Auth;
use cloud_core::bus::{Bus, Notification};
use cloud_core::cloud::Cloud;
use cloud_core::configuration::Configuration;
use cloud_core::credential::Keys;
use cloud_core::limits::RateLimits;
use cloud_core::logs::history::History;
use cloud_core::session::Sessions;
use cloud_core::tunnels::DeviceConnections;
use cloud_core::{password, session, tunnels};
use data::Database;
use data::write::Environment;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use crate::accounts::sessions;
use crate::arguments::{LogFormat, Serve};
use crate::bounds::Bounds;
use crate::database_probe::DatabaseProbe;
use crate::device;
use crate::device::devices::Devices;
use crate::long_answers::LongAnswers;
use crate::offline::with_database;
use crate::registry::Registry;
use crate::registry::garbage;
use crate::registry::garbage_signal::GarbageSignal;
use crate::router::App;
use crate::shares::Shares;
use crate::state::{Server, ServerState};
use crate::{
    configuration_file, connections, first_start, open_files, registry, release_asset, secrets,
};

/// How long requests in progress may continue when the program is to end.
const GRACE: Duration = Duration::from_secs(10);
/// Interval between removals of inactive callers.
const TIDY: Duration = Duration::from_secs(60);
/// Interval between checks whether the database file may shrink, and between two steps of shrinking.
const SHRINK: Duration = Duration::from_secs(10);
const BETWEEN_STEPS: Duration = Duration::from_millis(20);

/// `fleet-cloud serve`.
///
/// # Errors
/// If it cannot start, or the listener fails.
pub(crate) fn serve(arguments: Serve) -> Result<()> {
    let (configuration, log_format) = configuration_file::load(arguments)?;
    log_to_stderr(log_format);
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("no threads can be started")?
        .block_on(run(configuration))
}

fn log_to_stderr(format: LogFormat) {
    let filter = EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| EnvFilter::new("info,async_nats=warn"));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    match format {
        LogFormat::Text => log
            .with_target(false)
            .with_ansi(std::io::stderr().is_terminal())
            .init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
}

/// `fleet-cloud registry-certificate`.
///
/// # Errors
/// If the database cannot be used.
pub(crate) fn print_registry_certificate(arguments: Serve) -> Result<()> {
    with_database(arguments, async |database, keyring| {
        let registry = Registry::load(database, keyring).await?;
        print!("{}", registry.certificate());
        Ok(())
    })
}

/// `fleet-cloud rotate-signing-keys`.
///
/// # Errors
/// If the database cannot be used.
pub(crate) fn rotate_signing_keys(arguments: Serve) -> Result<()> {
    with_database(arguments, async |database, _| {
        for name in [session::SECRET, registry::KEPT] {
            let forget = data::SystemPurpose::Operation
                .sql("DELETE FROM platform_setting WHERE name = ?")
                .with(name);
            database
                .execute(&forget)
                .await
                .with_context(|| format!("`{name}` cannot be deleted"))?;
        }
        println!(
            "The signing keys are forgotten. Start the cloud (every replica), and give the registry what \
             `fleet-cloud registry-certificate` prints."
        );
        Ok(())
    })
}

async fn run(configuration: Configuration) -> Result<()> {
    open_files::allow_all();
    let database = Database::open(&configuration.database, &configuration.pools.options())
        .await
        .context("the database cannot be used")?;
    let listener = TcpListener::bind(configuration.listen)
        .await
        .with_context(|| format!("cannot listen on {}", configuration.listen))?;
    let server = ServerState::from(assembled(configuration, database.clone()).await?);
    let cloud = server.cloud.clone();
    if let Some(first) = first_start::prepare(&cloud).await? {
        first.print();
    }
    let (listening, endpoints) = (cloud.clone(), server.clone());
    cloud.bus.listen(move |notification| match notification {
        Notification::Effects(effects) => {
            listening.auth.keys.invalidate(effects);
            listening.logs.invalidate(effects);
            endpoints.devices.invalidate(effects);
            listening.tunnels.invalidate(effects);
            endpoints.garbage.invalidate(effects);
        }
        Notification::Arrived { device, at } => {
            listening.tunnels.arrived_elsewhere(*device, *at);
        }
        Notification::Lagged => {
            listening.auth.keys.forget_all();
            listening.tunnels.invalidate_all();
        }
    });
    let bus_task = cloud.clone();
    database.listen(move |effects| bus_task.bus.publish(effects));
    if let Some(url) = &cloud.configuration.public_url {
        tracing::info!("devices and people reach this cloud at {url}");
    }
    let stop = cloud.stop.clone();
    // It ends last, so that the final messages of the others are sent as well.
    let ended = CancellationToken::new();
    let bus_task = tokio::spawn({
        let (bus, ended) = (cloud.bus.clone(), ended.clone());
        async move { bus.run(ended).await }
    });
    let tunnels_task = tunnels::run(cloud.tunnels.clone(), stop.clone()).await?;
    open_files::compare_with_devices(&cloud.database).await?;
    tokio::spawn(tidying(server.clone(), stop.clone()));
    tokio::spawn(shrinking(cloud.clone(), stop.clone()));
    tokio::spawn(sessions::tidying(cloud.clone(), stop.clone()));
    tokio::spawn(garbage::collecting(server.clone(), stop.clone()));
    tokio::spawn(release_asset::tidying(cloud.clone(), stop.clone()));
    device::start(&server);
    // Installed first: a reader of the next line may already send a signal.
    let stop_requested = stop_requested()?;
    tracing::info!("listening at http://{}", listener.local_addr()?);
    let bounds = Bounds::from_limits(&cloud.configuration.limits);
    let proxies = cloud.configuration.trusted_proxies.clone();
    let serving = connections::serve(listener, App::new(server), bounds, proxies, stop.clone());
    let serving = tokio::spawn(serving);
    stop_requested.await;
    tracing::info!("stopping: requests in progress have {GRACE:?} to finish");
    stop.cancel();
    if timeout(GRACE, serving).await.is_err() {
        tracing::warn!("some requests were still in progress");
    }
    tunnels_task
        .await
        .context("which devices are connected was not recorded completely")?;
    ended.cancel();
    let _ = bus_task.await;
    database.close().await;
    Ok(())
}

async fn assembled(configuration: Configuration, database: Database) -> Result<Server> {
    secrets::check(&database, &configuration.keyring).await?;
    let keyring = &configuration.keyring;
    let sessions = Sessions::load(&database, keyring)
        .await
        .context("failed to load the secret that signs sessions")?;
    let tokens = Registry::load(&database, keyring)
        .await
        .context("failed to load the key that signs tokens for the registry")?;
    let bus = match &configuration.bus {
        None => Bus::in_process(),
        Some(url) => Bus::between_machines(url, &configuration.nats.prefix).await?,
    };
    let branding = configuration.branding.clone();
    let registry = configuration.registry.clone();
    let environment = Environment {
        branding: branding.clone(),
        registry: registry.unwrap_or_else(|| "registry.invalid".to_owned()),
        deletes_images: configuration.registry_url.is_some(),
        quotas: configuration.quotas,
        keyring: configuration.keyring.clone(),
        rules: data::ROW_RULES,
    };
    let long_answers = LongAnswers::new(configuration.pools.streamed_answers());
    let cloud = Cloud {
        tunnels: Arc::new(DeviceConnections::new(
            &configuration,
            &database,
            &bus,
            &environment,
        )),
        auth: Auth {
            database: database.clone(),
            bus: bus.clone(),
            sessions,
            keys: Keys::default(),
            limits: RateLimits::new(&configuration.limits),
            tunnel_server_key: configuration.tunnel_server_key.clone(),
            longest_body: configuration.limits.body,
        },
        database,
        passwords: password::HashQueue::default(),
        logs: History::new(&bus, &configuration.nats),
        bus,
        tunnel_variables: branding.variables("SUPERVISOR_VPN_CONTROL").collect(),
        environment,
        configuration,
        stop: CancellationToken::new(),
    };
    Ok(Server {
        cloud: Arc::new(cloud),
        shares: Shares::default(),
        database_probe: DatabaseProbe::default(),
        long_answers,
        registry: tokens,
        garbage: GarbageSignal::default(),
        devices: Devices::default(),
    })
}

async fn tidying(server: ServerState, stop: CancellationToken) {
    let mut times = interval(TIDY);
    while stop.run_until_cancelled(times.tick()).await.is_some() {
        server.cloud.auth.limits.tidy();
        server.shares.tidy();
    }
}

/// Releases unused space of the database file, in small steps.
async fn shrinking(cloud: Arc<Cloud>, stop: CancellationToken) {
    let mut times = interval(SHRINK);
    times.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while stop.run_until_cancelled(times.tick()).await.is_some() {
        loop {
            match cloud.database.shrink().await {
                Ok(true) if !stop.is_cancelled() => sleep(BETWEEN_STEPS).await,
                Ok(_) => break,
                Err(error) => {
                    tracing::warn!("failed to shrink the file of the database: {error}");
                    break;
                }
            }
        }
    }
}

/// Waits for SIGINT or SIGTERM; signals are caught from now on, even before the future is polled.
fn stop_requested() -> Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt()).context("signals cannot be received")?;
    let mut terminate = signal(SignalKind::terminate()).context("signals cannot be received")?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}
