//! The benchmarks: `cargo xtask bench` builds everything in release, runs this, and puts what it prints
//! into docs/benchmarks.md.
//!
//! What is compared runs side by side in one run, so that a slow machine makes both slow. Nothing here
//! passes or fails: the figures stand beside their aims.

mod data_api;
mod device;
mod endpoints;
mod figures;
mod http_load;
mod many_plugins;
mod neighbours;
mod plugin_calls;
mod process;
mod start;
mod two_services;

use anyhow::{Context, Result};
use clap::Parser;

use crate::figures::Section;

#[derive(Parser)]
#[command(about = "Measures the supervisor of the layout that SUPERVISOR_DIST names")]
struct Arguments {
    /// Only these sections: calls, start, endpoints, docker, many, neighbours, data
    sections: Vec<String>,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let wanted = |name: &str| {
        arguments.sections.is_empty() || arguments.sections.iter().any(|section| section == name)
    };
    println!("On {}.\n", process::machine());
    if wanted("calls") {
        show("calls", plugin_calls::measure().await)?;
    }
    if wanted("start") {
        show("start", start::measure().await)?;
    }
    if wanted("endpoints") {
        show("endpoints", endpoints::measure().await)?;
    }
    if wanted("docker") {
        match two_services::measure()
            .await
            .context("failed to measure `docker`")?
        {
            Some(section) => println!("{}", section.to_markdown()),
            None => eprintln!("skipped: docker, because SUPERVISOR_TEST_DOCKER is not set"),
        }
    }
    if wanted("many") {
        show("many", many_plugins::measure().await)?;
    }
    if wanted("neighbours") {
        show("neighbours", neighbours::measure().await)?;
    }
    if wanted("data") {
        show("data", data_api::measure().await)?;
    }
    Ok(())
}

fn show(name: &str, section: Result<Section>) -> Result<()> {
    let section = section.with_context(|| format!("failed to measure `{name}`"))?;
    println!("{}", section.to_markdown());
    Ok(())
}
