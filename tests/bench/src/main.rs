//! The benchmarks: `cargo xtask bench` builds everything in release mode, runs this, and writes its output into
//! docs/benchmarks.md.
//!
//! Compared programs run side by side in one run, so a slow machine makes both slow. Nothing here passes or fails: the
//! figures are printed next to their aims.
//!
//! The sections on the cloud and those on the device are built separately, each with the settings of the measured
//! programs.

#![cfg_attr(
    not(all(feature = "cloud", feature = "device")),
    allow(
        dead_code,
        reason = "each of the two programs tells some figures alone"
    )
)]

#[cfg(feature = "cloud")]
mod cloud;
mod figures;
mod process;

#[cfg(feature = "device")]
mod device;
#[cfg(feature = "device")]
mod endpoints;
#[cfg(feature = "device")]
mod http_load;
#[cfg(feature = "device")]
mod many_plugins;
#[cfg(feature = "device")]
mod neighbours;
#[cfg(feature = "device")]
mod plugin_calls;
#[cfg(feature = "device")]
mod start;
#[cfg(feature = "device")]
mod two_services;
#[cfg(feature = "device")]
mod versions;

use anyhow::{Context, Result};
use clap::Parser;

use crate::figures::Section;

#[derive(Parser)]
#[command(about = "Measures the programs that `cargo xtask bench` has built")]
struct Arguments {
    /// Measure only these sections
    sections: Vec<String>,
    /// Also measure the largest sizes, which take long
    #[arg(long)]
    large: bool,
    /// The layout of another version of the device, for the section `versions`
    #[arg(long, value_name = "FOLDER")]
    beside: Option<std::path::PathBuf>,
    /// Do not describe the machine, because another program has done so
    #[arg(long)]
    without_machine: bool,
}

impl Arguments {
    fn is_selected(&self, name: &str) -> bool {
        self.sections.is_empty() || self.sections.iter().any(|section| section == name)
    }
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if !arguments.without_machine {
        println!("On {}.\n", process::machine());
    }
    #[cfg(feature = "device")]
    on_device(&arguments).await?;
    #[cfg(feature = "cloud")]
    for section in cloud::SECTIONS {
        if arguments.is_selected(section) || arguments.is_selected("cloud") {
            show(section, cloud::measure(section, arguments.large).await)?;
        }
    }
    Ok(())
}

#[cfg(feature = "device")]
async fn on_device(arguments: &Arguments) -> Result<()> {
    let is_selected = |name: &str| arguments.is_selected(name);
    if is_selected("calls") {
        show("calls", plugin_calls::measure().await)?;
    }
    if is_selected("start") {
        show("start", start::measure().await)?;
    }
    if is_selected("endpoints") {
        show("endpoints", endpoints::measure().await)?;
    }
    if is_selected("docker") {
        match two_services::measure()
            .await
            .context("failed to measure `docker`")?
        {
            Some(section) => println!("{}", section.to_markdown()),
            None => eprintln!("skipped: docker, because SUPERVISOR_TEST_DOCKER is not set"),
        }
    }
    match &arguments.beside {
        Some(beside) if is_selected("versions") => {
            show("versions", versions::measure(beside).await)?;
        }
        _ => (),
    }
    if is_selected("many") {
        show("many", many_plugins::measure().await)?;
    }
    if is_selected("languages") {
        show("languages", many_plugins::measure_languages().await)?;
    }
    if is_selected("neighbours") {
        show("neighbours", neighbours::measure().await)?;
    }
    Ok(())
}

fn show(name: &str, section: Result<Section>) -> Result<()> {
    let section = section.with_context(|| format!("failed to measure `{name}`"))?;
    println!("{}", section.to_markdown());
    Ok(())
}
