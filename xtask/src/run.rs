//! `cargo xtask run`: a cloud with its registry, and a device that registers, pulls a sample release of two services
//! that talk to each other, and runs it. With `--local` only the device, in local mode. Ctrl-C stops everything, and
//! removes services and temporary state; with `--state-dir` or `--keep` the next session continues with the same cloud
//! and the same device.

use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use held_port::HeldPort;
use serde_json::json;

use crate::cargo::Steps;
use crate::interrupted::{self, Signals};
use crate::layout::{self, Layout};

mod alone;
mod children;
mod cloud;
mod device;
mod engine_choice;
mod following;
mod http_client;
mod registry;
mod sample_fleet;
mod samples;
mod session_folder;
mod traces;

use device::Device;
use engine_choice::Engine;
use samples::Samples;
use session_folder::SessionFolder;
use traces::Traces;

#[derive(clap::Args)]
pub(crate) struct RunArguments {
    /// Optimize and strip the supervisor
    #[arg(long)]
    release: bool,
    /// Run the programs of the last build in target/dist, and build only the sample
    #[arg(long, conflicts_with = "release")]
    no_build: bool,
    /// The address on which the API listens; port 0 chooses a free port
    #[arg(long, default_value = "127.0.0.1:48484", value_name = "ADDR:PORT")]
    listen: SocketAddr,
    /// Keep everything in this folder instead of a temporary one: the device's state and identity, the volumes of its
    /// services, the cloud's database and its registry. The next start continues with them
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// Where services run: Docker if it answers, otherwise wasm
    #[arg(long, default_value = "auto", value_parser = ["auto", "docker", "wasm"])]
    engine: String,
    /// Start no cloud, but one device in local mode, with the sample as its local target
    #[arg(long)]
    local: bool,
    /// The address on which the cloud listens; port 0 chooses a free port
    #[arg(
        long,
        default_value = "127.0.0.1:8080",
        value_name = "ADDR:PORT",
        conflicts_with = "local"
    )]
    cloud: SocketAddr,
    /// The registry for the images of releases, instead of one that the command starts; it must accept the cloud's
    /// tokens (`fleet-cloud registry-certificate`) or require none
    #[arg(long, value_name = "HOST", conflicts_with = "local")]
    registry: Option<String>,
    /// Start without a sample release, except one that the folder of --state-dir already has
    #[arg(long)]
    no_sample: bool,
    /// Keep the temporary folder, as --state-dir does
    #[arg(long)]
    keep: bool,
}

/// The polling interval for conditions that have no notification.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

pub(crate) fn run(arguments: RunArguments) -> Result<()> {
    let runtime = interrupted::runtime()?;
    // Steps that can fail early come before the build, which may take minutes.
    let killed = traces::end_killed_runs();
    let listen = free_address(arguments.listen)?;
    let cloud_at =
        if arguments.local {
            None
        } else {
            Some(free_address(arguments.cloud).context(
                "`--cloud` sets the cloud's address, but `--local` runs without a cloud",
            )?)
        };
    if cloud_at.is_some() {
        registry::install()?;
    }
    let choice = runtime.block_on(engine_choice::choose(&arguments.engine))?;
    println!("engine: {} ({})", choice.engine.name(), choice.why);

    let sample_steps = usize::from(!arguments.no_sample);
    let (layout, mut steps) = if arguments.no_build {
        (layout::built()?, Steps::new(sample_steps))
    } else {
        let mut steps = Steps::new(layout::STEPS + sample_steps);
        let release = arguments.release;
        let layout = layout::build_in(&layout::BuildArguments { release }, &mut steps)?;
        (layout, steps)
    };
    let samples = if arguments.no_sample {
        None
    } else {
        steps.begin("the sample services");
        Some(Samples::build(&choice.engine)?)
    };
    runtime.block_on(async {
        for traces in killed {
            let cleaned = traces.remove_services(&layout).await;
            warn_of(cleaned.and_then(|()| traces.remove_folder()));
        }
        let addresses = RunAddresses {
            device: listen,
            cloud: cloud_at,
        };
        session(arguments, addresses, choice.engine, &layout, samples).await
    })
}

/// Returns the address with a free port in place of port 0. Nothing listens on it until after the build, which may take
/// minutes.
fn free_address(address: SocketAddr) -> Result<SocketAddr> {
    let held = HeldPort::at(address).with_context(|| {
        format!("failed to listen on {address}: stop what uses it, or choose another address with --listen")
    })?;
    Ok(held.keep())
}

/// The addresses that things listen on.
struct RunAddresses {
    device: SocketAddr,
    /// `None` if there is no cloud.
    cloud: Option<SocketAddr>,
}

async fn session(
    arguments: RunArguments,
    addresses: RunAddresses,
    engine: Engine,
    layout: &Layout,
    samples: Option<Samples>,
) -> Result<()> {
    let mut signals = Signals::listen()?;
    let folder = tempfile::Builder::new()
        .prefix(traces::FOLDER_PREFIX)
        .tempdir()?
        .keep();
    let owner = short_name(&folder);
    let kept = SessionFolder {
        folder: match &arguments.state_dir {
            Some(folder) => std::path::absolute(folder)?,
            None => folder.join("state"),
        },
    };
    fs::create_dir_all(&kept.folder)?;
    let images = HeldPort::new()?.keep();
    let made = samples.as_ref().map(|samples| match addresses.cloud {
        None => samples.image_names(&owner),
        Some(_) => samples.pushed_names(images),
    });
    let traces = Traces {
        folder,
        images: made.unwrap_or_default(),
        kept,
        engine,
        keep: arguments.keep || arguments.state_dir.is_some(),
    };
    traces.record()?;

    let mut device = None;
    let mut cloud = None;
    let sample = samples.as_ref();
    let serving = async {
        match addresses.cloud {
            None => {
                let listen = addresses.device;
                alone::serve(layout, listen, &traces, sample, &owner, &mut device).await
            }
            Some(at) => {
                let places = following::Places {
                    layout,
                    listen: addresses.device,
                    cloud: at,
                    registry: arguments.registry.as_deref(),
                    images,
                    traces: &traces,
                };
                following::follow(&places, sample, &mut cloud, &mut device).await
            }
        }
    };
    let outcome = tokio::select! {
        ended = serving => ended,
        _ = signals.received() => Ok(()),
    };
    let all_gone = stop(layout, device, &traces, arguments.local).await;
    if let Some(cloud) = cloud {
        warn_of(cloud.end().await.context("failed to stop the cloud"));
    }
    if all_gone {
        tell_of_what_stays(&traces);
    }
    outcome
}

/// Ends the supervisor and removes its services and everything else that it left; returns whether everything is gone.
async fn stop(layout: &Layout, device: Option<Device>, traces: &Traces, local: bool) -> bool {
    say("\nstopping the device and its services");
    if let Some(mut device) = device {
        // The images of the sample are removed, so the stored state must not require them.
        if traces.keep && local && !traces.images.is_empty() {
            warn_of(device.empty_target().await);
        }
        warn_of(device.end().await.context("failed to stop the supervisor"));
    }
    if let Err(error) = traces.remove_services(layout).await {
        warn_of(Err(error));
        say("the next `cargo xtask run` tries again to remove what is left");
        return false;
    }
    true
}

/// Removes the temporary folder, and reports what remains of the run.
fn tell_of_what_stays(traces: &Traces) {
    warn_of(traces.remove_folder());
    if traces.keep {
        say(&format!(
            "everything is kept: `cargo xtask run --state-dir {}` continues with it",
            traces.kept.folder.display()
        ));
    } else {
        say("stopped, and everything was removed");
    }
}

/// Writes the description of the board that a device's image contains, for the scratch host root.
fn describe_board(host_root: &Path) -> Result<()> {
    let boot = host_root.join("mnt/boot");
    fs::create_dir_all(&boot)?;
    let description = json!({ "slug": board(), "arch": arch() });
    Ok(fs::write(
        boot.join("device-type.json"),
        description.to_string(),
    )?)
}

fn arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        other => other,
    }
}

/// Returns the device type, as catalogues name it.
fn board() -> String {
    format!("generic-{}", arch())
}

/// Returns the random end of a temporary folder's name, in the characters that an image name may contain.
fn short_name(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let end = name.strip_prefix(traces::FOLDER_PREFIX).unwrap_or(&name);
    end.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|letter| letter.to_ascii_lowercase())
        .collect()
}

/// Prints, and ignores failures: a closed terminal must not keep us from cleaning up.
fn say(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

fn warn_of(done: Result<()>) {
    if let Err(error) = done {
        let _ = writeln!(std::io::stderr(), "warning: {error:#}");
    }
}
