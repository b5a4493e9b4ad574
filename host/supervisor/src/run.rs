//! `supervisor run`: starts the parts, serves until a signal arrives, and stops the parts again. Services outlive all
//! of it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use api::Listener;
use stop_signals::StopSignals;
use store::{Store, StoreError};
use tokio_util::sync::CancellationToken;

use crate::address::{self, AddressFile};
use crate::cloud::Membership;
use crate::configuration::Configuration;
use crate::host::Host;
use crate::listen_address::openness;
use crate::parts::{Parts, StartContext};
use crate::run_folder::RunFolder;
use crate::{listeners, systemd};

/// Threads that run tasks. A device has other work to do, and each thread costs memory.
const WORKERS: usize = 2;
/// Threads for blocking work: the store, files. They exist only when needed, mostly none, and one that waits does not
/// delay the others. Names are resolved elsewhere (`names`), since name servers cause the longest waits.
const BLOCKING: usize = 64;

/// How long blocking work may take to end before the device is restarted in the same process.
const SETTLES_WITHIN: Duration = Duration::from_secs(10);

/// How long the previous run may hold the state folder. After that the process ends, and its service manager restarts
/// it.
const RELEASED_WITHIN: Duration = Duration::from_secs(60);

/// How often a folder is tried that the previous run still holds.
const LOOK_AGAIN: Duration = Duration::from_millis(25);

/// The reason for the end of a run.
enum RunOutcome {
    /// It was requested.
    Stopped,
    /// The device's identity has changed: everything that contains its uuid has to be created again.
    BeginsAgain,
}

/// Runs until one of the [`StopSignals`] arrives.
///
/// # Errors
/// If the device cannot be started: another supervisor has the state folder, an address is taken, an engine cannot be
/// set up.
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
            // Everything that holds the state folder has to release it.
            runtime.shutdown_timeout(SETTLES_WITHIN);
            continue;
        }
        // Work that still blocks then has nothing left to finish.
        runtime.shutdown_background();
        return outcome.map(drop);
    }
}

async fn device(configuration: &Configuration) -> Result<RunOutcome> {
    // First of all, since a signal may arrive at any moment.
    let mut stop_signals = StopSignals::listen()?;

    let run_folder = RunFolder::open(&configuration.host_root, &configuration.branding);
    // The store itself sets a broken database aside and logs it, and logs a disk that accepts no writes.
    let mut store = open_store(configuration, &run_folder).await?;
    address::forget(&configuration.state_dir);
    let mut sockets = listeners::open(&configuration.listen).await?;
    let addresses = addresses(&sockets)?;
    for sentence in &configuration.without_effect {
        tracing::warn!("{sentence}");
    }

    let host = Host::new(configuration);
    host.announce();
    // Before anything contains the device's uuid.
    let membership = Membership::find(
        &host.config_json,
        &configuration.branding,
        configuration.plain_http(),
        &mut store,
    )?;
    let stopping = CancellationToken::new();
    let begin_again = CancellationToken::new();
    let context = StartContext {
        host: &host,
        membership,
        run_folder: &run_folder,
        addresses: &addresses,
        begin_again: &begin_again,
        stopping: &stopping,
    };
    let parts = Parts::start(configuration, &store, context).await?;
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
    parts.plugin_api.attach(app.clone());
    let (device, api, stop) = (parts.device.clone(), app.clone(), stopping.clone());
    let tunnel = tokio::spawn(async move {
        let cloud = &device.cloud;
        cloud.keep_tunnel(api, &device.reconciler, stop).await;
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
        // The API works anyway, at the address that is logged.
        .inspect_err(|error| tracing::error!("{error:#}"))
        .ok();
    tracing::info!("the API listens on {}", listed(&addresses));
    systemd::ready();

    let reconciler = &parts.device.reconciler;
    let (received, ending) = tokio::select! {
        name = stop_signals.received() => (name, RunOutcome::Stopped),
        () = begin_again.cancelled() => ("the device has a new identity", RunOutcome::BeginsAgain),
        never = systemd::watchdog(|| reconciler.answers()) => match never {},
        never = heap::return_unused_regularly() => match never {},
    };
    tracing::info!("{received}: the supervisor stops, its services continue");
    if matches!(ending, RunOutcome::Stopped) {
        systemd::stopping();
    }
    stopping.cancel();
    // A request in progress may still wait for the loop, which finishes what it has begun.
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
    parts.plugin_api.detach();
    parts.plugins_slot.detach();
    Ok(ending)
}

/// Opens the store. A run that has just ended in this process may hold it for a moment longer: a program that it was
/// starting has its open files until it runs, and blocking work takes some time to end.
async fn open_store(configuration: &Configuration, run_folder: &RunFolder) -> Result<Store> {
    let deadline = Instant::now() + RELEASED_WITHIN;
    let mut has_warned = false;
    loop {
        match Store::open_or_copy(&configuration.state_dir, run_folder.folder()) {
            Err(StoreError::InUse { pid: Some(pid), .. })
                if pid == std::process::id() && Instant::now() < deadline => {}
            opened => return Ok(opened?.store),
        }
        if !has_warned {
            tracing::warn!(
                "the previous run still uses the state folder: waiting until it is free"
            );
            has_warned = true;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// With few of them a test notices work that blocks in the wrong place.
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

fn addresses(listeners: &[Listener]) -> Result<Vec<SocketAddr>> {
    let addresses: std::io::Result<_> = listeners.iter().map(|l| l.socket.local_addr()).collect();
    addresses.context("failed to read the addresses of the API's own sockets")
}

fn listed(addresses: &[SocketAddr]) -> String {
    let urls: Vec<String> = addresses.iter().map(|a| format!("http://{a}")).collect();
    urls.join(", ")
}
