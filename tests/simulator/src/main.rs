//! `cargo xtask simulate` builds this and a cloud, and runs it.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Parser;
use simulator::{At, Plan, Setup, Troubles, run};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

/// Simulate a fleet: devices with the real link to the cloud and nothing behind it. They register, follow releases,
/// report their state, and keep tunnels open
#[derive(Parser)]
#[command(name = "cargo xtask simulate", bin_name = "cargo xtask simulate")]
struct Arguments {
    /// Number of devices
    #[arg(long, default_value_t = 100)]
    devices: u32,
    /// Number of releases after the first one
    #[arg(long, default_value_t = 1)]
    releases: u32,
    /// How many times to pin all devices after that, alternately to the last release and to the first one
    #[arg(long, default_value_t = 0)]
    pins: u32,
    /// An existing cloud, such as `http://127.0.0.1:8080`; without it, the command starts one for the simulation
    #[arg(long, value_name = "URL", requires = "token")]
    cloud: Option<String>,
    /// The token or API key of a user who may create fleets in that cloud
    #[arg(long, env = "FLEET_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// The database of the cloud that the command starts: `sqlite` (a file in a temporary folder), `postgres` (a
    /// private server), or an address (`sqlite:PATH`, `postgres://…`)
    #[arg(
        long,
        default_value = "sqlite",
        value_name = "DATABASE",
        conflicts_with = "cloud"
    )]
    database: String,
    /// Seconds that a device takes to download a release
    #[arg(long, default_value_t = 0.0, value_name = "SECONDS")]
    download: f64,
    /// Seconds between two polls of a device, instead of the interval in its target
    #[arg(long, value_name = "SECONDS")]
    poll_interval: Option<f64>,
    /// Number of devices that register at the same time
    #[arg(long, default_value_t = 64)]
    at_once: usize,
    /// Number of devices that the cloud notifies of a release immediately, and in each second after that
    #[arg(long, conflicts_with = "cloud")]
    pushes_per_second: Option<u32>,
    /// Seconds that each part of the simulation may take
    #[arg(long, default_value_t = 900.0, value_name = "SECONDS")]
    patience: f64,
    /// The device type of the fleet
    #[arg(long, default_value = "generic-amd64")]
    board: String,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
    /// The program `fleet-cloud`, if the command starts a cloud
    #[arg(long, env = "SIMULATOR_FLEET_CLOUD", hide = true)]
    program: Option<PathBuf>,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let troubles = Troubles::default();
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("error"));
    let log = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_filter(filter);
    tracing_subscriber::registry()
        .with(log)
        .with(troubles.clone())
        .init();
    let (plan, at) = (arguments.plan()?, arguments.at()?);
    let outcome = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("no threads can be started")?
        .block_on(async {
            tokio::select! {
                outcome = run(&plan, &at, &troubles) => outcome,
                // Everything that was started ends with this process.
                ended = until_end_signal() => ended,
            }
        })?;
    if arguments.json {
        println!("{}", serde_json::to_string(&outcome)?)
    } else {
        print!("{}", outcome.table())
    }
    Ok(())
}

async fn until_end_signal<T>() -> Result<T> {
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted?,
        _ = terminate.recv() => {}
    }
    bail!("interrupted")
}

impl Arguments {
    fn plan(&self) -> Result<Plan> {
        let seconds = |seconds: f64| {
            Duration::try_from_secs_f64(seconds)
                .with_context(|| format!("`{seconds}` is not a valid number of seconds"))
        };
        Ok(Plan {
            devices: self.devices,
            releases: self.releases,
            pins: self.pins,
            download: seconds(self.download)?,
            interval: self.poll_interval.map(seconds).transpose()?,
            at_once: self.at_once,
            patience: seconds(self.patience)?,
            board: self.board.clone(),
        })
    }

    fn at(&self) -> Result<At> {
        if let (Some(url), Some(token)) = (&self.cloud, &self.token) {
            return Ok(At::There {
                url: url.clone(),
                token: token.clone(),
            });
        }
        let Some(program) = &self.program else {
            bail!("no cloud: name one with `--cloud`, or start this by `cargo xtask simulate`");
        };
        let database = match self.database.as_str() {
            "sqlite" => None,
            "postgres" => bail!("`--database postgres` is for `cargo xtask simulate`"),
            url => Some(url.to_owned()),
        };
        Ok(At::Own(Setup {
            program: program.clone(),
            database,
            pushes_per_second: self.pushes_per_second,
        }))
    }
}
