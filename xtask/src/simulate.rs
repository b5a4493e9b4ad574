//! `cargo xtask simulate`: many devices, of which only the link is real, and a cloud.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::cargo;
use crate::private_postgres::PrivatePostgres;

/// The profile of the cloud and of the programs that measure it.
pub(crate) const PROFILE: &str = "cloud";

#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct SimulateArguments {
    /// Passed on to the simulator, which parses them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

pub(crate) fn run(arguments: &SimulateArguments) -> Result<()> {
    let wants_help = arguments
        .rest
        .iter()
        .any(|word| word == "--help" || word == "-h");
    let simulator = build("simulator")?;
    if wants_help {
        let mut simulator = Command::new(simulator);
        simulator.arg("--help");
        return cargo::finish(simulator);
    }
    let cloud = build("fleet-cloud")?;
    let mut words = arguments.rest.clone();
    // The server ends with this value.
    let mut server = None;
    for at in 1..words.len() {
        if words[at - 1] == "--database" && words[at] == "postgres" {
            words[at] = server.insert(PrivatePostgres::start()?).url();
            break;
        }
    }
    let mut simulator = Command::new(simulator);
    simulator.args(words).env("SIMULATOR_FLEET_CLOUD", cloud);
    cargo::finish(simulator)
}

/// Builds a program for speed, and returns its path.
pub(crate) fn build(package: &str) -> Result<PathBuf> {
    let build = [
        "build",
        "--quiet",
        "--profile",
        PROFILE,
        "--package",
        package,
    ];
    cargo::finish(cargo::cargo(build))?;
    Ok(cargo::target_folder().join(PROFILE).join(package))
}
