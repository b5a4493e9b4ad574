//! `cargo xtask simulate`: many devices, of which nothing is real but the link, and a cloud.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::cargo;
use crate::private_postgres::PrivatePostgres;

/// The profile that the cloud and what measures it are built with.
pub(crate) const PROFILE: &str = "cloud";

#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Arguments {
    /// For the simulator, which tells them itself
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
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
    let postgres = words
        .iter()
        .zip(words.iter().skip(1))
        .position(|(flag, value)| flag == "--database" && value == "postgres");
    // It ends with this value.
    let server = match postgres {
        None => None,
        Some(_) => Some(PrivatePostgres::start()?),
    };
    if let (Some(at), Some(server)) = (postgres, &server)
        && let Some(word) = words.get_mut(at + 1)
    {
        *word = server.url();
    }
    let mut simulator = Command::new(simulator);
    simulator.args(words).env("SIMULATOR_FLEET_CLOUD", cloud);
    cargo::finish(simulator)
}

/// Builds a program for speed; where it is.
pub(crate) fn build(package: &str) -> Result<PathBuf> {
    cargo::finish(cargo::cargo([
        "build",
        "--quiet",
        "--profile",
        PROFILE,
        "--package",
        package,
    ]))?;
    Ok(cargo::target_folder().join(PROFILE).join(package))
}
