//! `run`: serves the plugin on this machine over HTTP, in the device's runtime.

mod answer_stream;
mod call_lines;
mod identify_requests;
mod refusal;
mod requests;
mod served_plugin;
mod steps;
mod terminal_log;
mod watcher;

use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use axum::Router;
use axum::extract::{ConnectInfo, Request};
use serde_json::json;
use stop_signals::StopSignals;
use tokio::net::TcpListener;
use tokio::sync::RwLock;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use self::call_lines::ActionLines;
use self::identify_requests::IdentifyRequests;
use self::requests::Requests;
use self::served_plugin::{ServedDevice, ServedPlugin};
use self::terminal_log::TerminalLog;
use self::watcher::Watcher;
use crate::arguments::Run;
use crate::commands::trial::Trial;
use crate::component::Component;
use crate::device_file::DEVICE;
use crate::log_filter;
use crate::output::{Output, has_colours};

pub(crate) async fn run(arguments: &Run, output: &Output) -> Result<ExitCode> {
    tracing_subscriber::registry()
        .with(TerminalLog::new(has_colours()))
        .with(log_filter::for_terminal())
        .init();
    let listener = TcpListener::bind(arguments.listen).await.with_context(|| {
        format!(
            "cannot listen on {}: is a supervisor running? `--listen 127.0.0.1:0` takes a free port",
            arguments.listen
        )
    })?;
    // Before the first build, so that no saved file is missed.
    let watcher = match (&arguments.component.file, arguments.no_watch) {
        (None, false) => Some(Watcher::new(&arguments.component.project.project)?),
        _ => None,
    };
    // Until this has been built, there is nothing to stop, and a signal ends the command by itself.
    let component = Component::load(&arguments.component, output)?;
    let mut stop_signals = StopSignals::listen()?;
    // Kept across reloads, like the store of a device across updates.
    let state = tempfile::tempdir().context("failed to create a temporary folder")?;
    let folder = match &arguments.state_dir {
        Some(folder) => {
            occupy(folder)?;
            folder.clone()
        }
        None => state.path().to_owned(),
    };
    let served = Arc::new(RwLock::new(ServedPlugin::Nothing));
    let serving = async {
        start(&component, arguments, &folder, &served, output).await?;
        drop(component);
        serve(listener, watcher, arguments, &folder, &served, output).await
    };
    tokio::select! {
        _ = stop_signals.received() => {}
        ended = serving => ended?,
    }
    let stopped = async {
        // Calls in progress finish first.
        let last = std::mem::replace(&mut *served.write().await, ServedPlugin::Nothing);
        if let ServedPlugin::Device(device) = last {
            device.host.stop().await;
        }
    };
    tokio::select! {
        () = stopped => {}
        // Somebody does not want to wait for them.
        _ = stop_signals.received() => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// The file by which `run` knows a folder of its own again.
const MARK: &str = "supervisor-plugin-run.txt";

/// Creates the folder of the simulated device, or checks that it is one: starting a device deletes and overwrites files in
/// it, such as its plugins and its policy.
///
/// # Errors
/// It contains something else, or cannot be written.
fn occupy(folder: &Path) -> Result<()> {
    let shown = folder.display();
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create `{shown}`"))?;
    let mark = folder.join(MARK);
    if mark.is_file() {
        return Ok(());
    }
    let mut entries =
        std::fs::read_dir(folder).with_context(|| format!("cannot list `{shown}`"))?;
    ensure!(
        entries.next().is_none(),
        "`{shown}` contains files that are not of a simulated device, and `run` would replace some of them: name a new or \
         empty folder in `--state-dir`"
    );
    let text = "`supervisor-plugin run --state-dir` keeps a simulated device in this folder, and replaces files in it.\n";
    std::fs::write(&mark, text).with_context(|| format!("cannot write `{}`", mark.display()))
}

/// Answers requests, and builds the plugin again whenever a file is saved.
///
/// # Errors
/// Returns only if the server has ended, or files can no longer be watched.
async fn serve(
    listener: TcpListener,
    watcher: Option<Watcher>,
    arguments: &Run,
    folder: &Path,
    served: &Arc<RwLock<ServedPlugin>>,
    output: &Output,
) -> Result<()> {
    let address = listener.local_addr()?;
    output.event(
        format_args!("listening on http://{address}; Ctrl-C ends it"),
        &json!({ "event": "listening", "address": format!("http://{address}") }),
    );
    let requests = Arc::new(Requests::new(Arc::clone(served), *output));
    let router = Router::new().fallback(
        move |ConnectInfo(client): ConnectInfo<SocketAddr>, request: Request| {
            let requests = Arc::clone(&requests);
            async move { requests.answer(client, request).await }
        },
    );
    let router = router.into_make_service_with_connect_info::<SocketAddr>();
    let server = tokio::spawn(async move { axum::serve(listener, router).await });
    tokio::select! {
        ended = server => ended?.context("the server has ended"),
        error = follow(watcher, arguments, folder, served, output) => Err(error),
    }
}

/// Builds and serves the plugin again whenever a file is saved; returns only if files can no longer be watched. If the
/// build fails, the previous version keeps running.
async fn follow(
    watcher: Option<Watcher>,
    arguments: &Run,
    folder: &Path,
    served: &RwLock<ServedPlugin>,
    output: &Output,
) -> anyhow::Error {
    let Some(mut watcher) = watcher else {
        return std::future::pending().await;
    };
    loop {
        if let Err(error) = watcher.changed().await {
            return error;
        }
        let restarted = async {
            let component = Component::load(&arguments.component, output)?;
            start(&component, arguments, folder, served, output).await
        };
        if let Err(error) = restarted.await {
            output.event(
                format_args!("error: {error:#}"),
                &json!({ "event": "error", "error": format!("{error:#}") }),
            );
        }
    }
}

/// Replaces the previous version of the plugin with this one. Calls in progress finish first.
///
/// # Errors
/// The device file or the policy is invalid, and the previous version keeps running; or a device would not load the
/// plugin.
async fn start(
    component: &Component,
    arguments: &Run,
    folder: &Path,
    served: &RwLock<ServedPlugin>,
    output: &Output,
) -> Result<()> {
    let project = &arguments.component.project.project;
    let trial = Trial::on(arguments.device.as_deref(), &project.join(DEVICE))?
        .with_policy(arguments.policy.as_deref())?
        .with_state(Some(folder))
        .with_action_observer(Arc::new(ActionLines(*output)));
    let manifest = &component.manifest;
    if let Some(hint) = trial.missing_mapping(manifest) {
        output.note(&hint);
    }
    if Trial::native_code(component).await?.is_none() {
        output.note(&format!("compiling {} for this machine…", manifest.name));
    }
    let mut place = served.write().await;
    // Two hosts running at once would share the store and the LEDs.
    if let ServedPlugin::Device(device) = std::mem::replace(&mut *place, ServedPlugin::Nothing) {
        device.host.stop().await;
    }
    match trial.start(component).await {
        Ok(host) => {
            *place = ServedPlugin::Device(Box::new(ServedDevice {
                host,
                manifest: manifest.clone(),
                identify: IdentifyRequests::new(trial.identify_provider(manifest), manifest),
            }));
            for route in &manifest.routes {
                output.note(&format!("  {route}"));
            }
            let routes = manifest.routes.iter().map(ToString::to_string);
            output.event(
                format_args!("serving {} {}", manifest.name, manifest.version),
                &json!({
                    "event": "serving", "name": manifest.name, "version": manifest.version.to_string(),
                    "routes": routes.collect::<Vec<_>>(),
                }),
            );
            Ok(())
        }
        Err(error) => {
            *place = ServedPlugin::Refused(format!("{error:#}"));
            Err(error.context("a device would not load the plugin"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starting a device deletes the folder `plugins`, and overwrites the policy.
    #[test]
    fn the_folder_of_a_device_is_a_new_or_empty_one_or_that_of_an_earlier_run() {
        let parent = tempfile::tempdir().unwrap();
        for name in ["new", "empty"] {
            let folder = parent.path().join(name);
            if name == "empty" {
                std::fs::create_dir(&folder).unwrap();
            }
            occupy(&folder).unwrap();
            std::fs::write(folder.join("policy.toml"), "").unwrap();
            occupy(&folder).unwrap();
        }
        let device = parent.path().join("device");
        std::fs::create_dir_all(device.join("plugins/rails")).unwrap();
        let error = occupy(&device).unwrap_err().to_string();
        assert!(error.contains("name a new or empty folder"), "{error}");
        let entries = std::fs::read_dir(&device).unwrap();
        assert_eq!(entries.count(), 1, "it stays as it was");
    }
}
