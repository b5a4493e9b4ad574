//! From the start to the end of the program.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use data::write::Environment;
use data::{Database, Keyring};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use crate::accounts::sessions;
use crate::arguments::{LogFormat, Serve};
use crate::bounds::Bounds;
use crate::bus::{Bus, News};
use crate::cloud::Cloud;
use crate::configuration::Configuration;
use crate::credential::Keys;
use crate::dashboard::live::Live;
use crate::device::{self, Devices};
use crate::health::Health;
use crate::limits::RateLimits;
use crate::long_answers::LongAnswers;
use crate::reach::Reach;
use crate::registry::Registry;
use crate::registry::garbage::{self, Garbage};
use crate::router::App;
use crate::session::Sessions;
use crate::shares::Shares;
use crate::{
    connections, first_start, open_files, password, reach, registry, release_asset, secrets,
    session,
};

/// How long requests that are under way have when the program is to end.
const GRACE: Duration = Duration::from_secs(10);
/// Between two looks at who has not asked for a while.
const TIDY: Duration = Duration::from_secs(60);
/// Between two looks at whether the file of the database may be smaller, and between two steps of that.
const SHRINK: Duration = Duration::from_secs(10);
const BETWEEN_STEPS: Duration = Duration::from_millis(20);

/// `fleet-cloud serve`.
///
/// # Errors
/// Where it cannot start, or the listener fails.
pub(crate) fn serve(given: Serve) -> Result<()> {
    let configuration = Configuration::of(given)?;
    log_to_stderr(configuration.log_format);
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

/// Does something with the configured database alone, while no cloud is served from here.
///
/// # Errors
/// Where the configuration is wrong, the database cannot be used, or what is done with it fails.
pub(crate) fn with_database(
    given: Serve,
    work: impl AsyncFnOnce(&Database, &Keyring) -> Result<()>,
) -> Result<()> {
    let configuration = Configuration::of(given)?;
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("no threads can be started")?
        .block_on(async {
            let database = Database::open(&configuration.database, &configuration.pools.options())
                .await
                .context("the database cannot be used")?;
            work(&database, &configuration.keyring).await?;
            database.close().await;
            Ok(())
        })
}

/// `fleet-cloud registry-certificate`.
///
/// # Errors
/// Where the database cannot be used.
pub(crate) fn print_registry_certificate(given: Serve) -> Result<()> {
    with_database(given, async |database, keyring| {
        let registry = Registry::of(database, keyring).await?;
        print!("{}", registry.certificate());
        Ok(())
    })
}

/// `fleet-cloud rotate-signing-keys`.
///
/// # Errors
/// Where the database cannot be used.
pub(crate) fn rotate_signing_keys(given: Serve) -> Result<()> {
    with_database(given, async |database, _| {
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
        .with_context(|| format!("nothing can listen at {}", configuration.listen))?;
    let cloud = Arc::new(assembled(configuration, database.clone()).await?);
    if let Some(first) = first_start::prepare(&cloud).await? {
        first.print();
    }
    let heeding = cloud.clone();
    cloud.bus.listen(move |news| match news {
        News::Effects(effects) => {
            heeding.keys.heed(effects);
            heeding.devices.heed(effects);
            heeding.reach.heed(effects);
            heeding.garbage.heed(effects);
        }
        News::Missed => {
            heeding.keys.forget_all();
            heeding.reach.heed_anything();
        }
    });
    let telling = cloud.clone();
    database.listen(move |effects| telling.bus.tell(effects));
    if let Some(url) = &cloud.configuration.public_url {
        tracing::info!("devices and people reach this cloud at {url}");
    }
    let stop = cloud.live.stop.clone();
    // It ends last: what the others do at the end is told as well.
    let ended = CancellationToken::new();
    let telling = tokio::spawn({
        let (cloud, ended) = (cloud.clone(), ended.clone());
        async move { cloud.bus.run(&cloud, ended).await }
    });
    let reaching = reach::run(cloud.clone(), stop.clone()).await?;
    open_files::compare_with_devices(&cloud.database).await?;
    tokio::spawn(tidying(cloud.clone(), stop.clone()));
    tokio::spawn(shrinking(cloud.clone(), stop.clone()));
    tokio::spawn(sessions::tidying(cloud.clone(), stop.clone()));
    tokio::spawn(garbage::collecting(cloud.clone(), stop.clone()));
    tokio::spawn(release_asset::tidying(cloud.clone(), stop.clone()));
    device::start(&cloud, &stop);
    // Whoever reads that it listens may tell it to end.
    let told_to_end = told_to_end()?;
    tracing::info!("listening at http://{}", listener.local_addr()?);
    let bounds = Bounds::of(&cloud.configuration.limits);
    let proxies = cloud.configuration.trusted_proxies.clone();
    let serving = connections::serve(listener, App::new(cloud), bounds, proxies, stop.clone());
    let serving = tokio::spawn(serving);
    told_to_end.await;
    tracing::info!("ending: requests that are under way have {GRACE:?}");
    stop.cancel();
    if timeout(GRACE, serving).await.is_err() {
        tracing::warn!("some requests were still under way");
    }
    reaching
        .await
        .context("who is connected was not written to the end")?;
    ended.cancel();
    let _ = telling.await;
    database.close().await;
    Ok(())
}

async fn assembled(configuration: Configuration, database: Database) -> Result<Cloud> {
    secrets::check(&database, &configuration.keyring).await?;
    let keyring = &configuration.keyring;
    let sessions = Sessions::of(&database, keyring)
        .await
        .context("the secret that sessions are signed with cannot be had")?;
    let tokens = Registry::of(&database, keyring)
        .await
        .context("the key that tokens for the registry are signed with cannot be had")?;
    let bus = match &configuration.bus {
        None => Bus::in_process(),
        Some(url) => Bus::between_machines(url, &configuration.nats.prefix).await?,
    };
    let branding = configuration.branding.clone();
    let registry = configuration.registry.clone();
    Ok(Cloud {
        database,
        sessions,
        keys: Keys::default(),
        limits: RateLimits::of(&configuration.limits),
        shares: Shares::default(),
        passwords: password::Line::default(),
        long_answers: LongAnswers::new(configuration.pools.streamed_answers()),
        reach: Reach::default(),
        registry: tokens,
        garbage: Garbage::default(),
        health: Health::default(),
        live: Live::default(),
        devices: Devices::new(&configuration, &bus),
        bus,
        tunnel_variables: branding.variables("SUPERVISOR_VPN_CONTROL").collect(),
        environment: Environment {
            branding,
            registry: registry.unwrap_or_else(|| "registry.invalid".to_owned()),
            deletes_images: configuration.registry_url.is_some(),
            quotas: configuration.quotas,
            keyring: configuration.keyring.clone(),
        },
        configuration,
    })
}

async fn tidying(cloud: Arc<Cloud>, stop: CancellationToken) {
    let mut times = interval(TIDY);
    while stop.run_until_cancelled(times.tick()).await.is_some() {
        cloud.limits.tidy();
        cloud.shares.tidy();
    }
}

/// Gives back what the file of the database does not need any more, in small steps.
async fn shrinking(cloud: Arc<Cloud>, stop: CancellationToken) {
    let mut times = interval(SHRINK);
    times.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while stop.run_until_cancelled(times.tick()).await.is_some() {
        loop {
            match cloud.database.shrink().await {
                Ok(true) if !stop.is_cancelled() => sleep(BETWEEN_STEPS).await,
                Ok(_) => break,
                Err(error) => {
                    tracing::warn!("the file of the database was not made smaller: {error}");
                    break;
                }
            }
        }
    }
}

/// Waits for SIGINT or SIGTERM; from now on, also where it is not polled yet.
fn told_to_end() -> Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt()).context("signals cannot be received")?;
    let mut terminate = signal(SignalKind::terminate()).context("signals cannot be received")?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}
