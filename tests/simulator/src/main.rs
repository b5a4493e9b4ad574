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

/// Simulates a fleet: devices with the real link to the cloud and nothing behind it. They register, follow
/// releases, report, and hold tunnels.
#[derive(Parser)]
#[command(name = "cargo xtask simulate", bin_name = "cargo xtask simulate")]
struct Arguments {
    /// How many devices
    #[arg(long, default_value_t = 100)]
    devices: u32,
    /// How many releases to follow after the first one
    #[arg(long, default_value_t = 1)]
    releases: u32,
    /// How often all devices are then pinned, to the last release and the first one in turn
    #[arg(long, default_value_t = 0)]
    pins: u32,
    /// A cloud that is there already, such as `http://127.0.0.1:8080`; else one is started for the simulation
    #[arg(long, value_name = "URL", requires = "token")]
    cloud: Option<String>,
    /// The token or key of somebody who may make fleets at that cloud
    #[arg(long, env = "FLEET_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// The database of the cloud that is started: `sqlite` in a temporary folder, `postgres` (a private server),
    /// or an address (`sqlite:PATH`, `postgres://…`)
    #[arg(
        long,
        default_value = "sqlite",
        value_name = "WHICH",
        conflicts_with = "cloud"
    )]
    database: String,
    /// How long a device takes for a release, in seconds
    #[arg(long, default_value_t = 0.0, value_name = "SECONDS")]
    download: f64,
    /// Between two polls of a device, in seconds, rather than what its target says
    #[arg(long, value_name = "SECONDS")]
    poll_interval: Option<f64>,
    /// How many devices register at a time
    #[arg(long, default_value_t = 64)]
    at_once: usize,
    /// How many devices the started cloud tells of a release at once, and in each second from then on
    #[arg(long, conflicts_with = "cloud")]
    pushes_per_second: Option<u32>,
    /// How long each part may take, in seconds
    #[arg(long, default_value_t = 900.0, value_name = "SECONDS")]
    patience: f64,
    /// The kind of board that devices are
    #[arg(long, default_value = "generic-amd64")]
    board: String,
    /// Print what it came to as JSON
    #[arg(long)]
    json: bool,
    /// `fleet-cloud`, where one is started
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
                ended = told_to_end() => ended,
            }
        })?;
    if arguments.json {
        println!("{}", serde_json::to_string(&outcome)?)
    } else {
        print!("{}", outcome.table())
    }
    Ok(())
}

async fn told_to_end<T>() -> Result<T> {
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
                .with_context(|| format!("`{seconds}` is no number of seconds"))
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
