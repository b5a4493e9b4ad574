//! `cargo xtask bench`: runs the benchmarks in release mode, and writes their figures to docs/benchmarks.md.
//!
//! The benchmarks of the device and of the cloud are two programs: each is built like the program that it measures.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::cargo;
use crate::crates::guest_crates;
use crate::for_tests;
use crate::layout::{self, build_components, components_folder};
use crate::private_docker::{PrivateDocker, install_packages_if_debian_root};
use crate::simulate;

#[derive(clap::Args)]
pub(crate) struct BenchArguments {
    /// Measure only these sections: calls, start, endpoints, docker, many, languages, neighbours, versions; cloud, or
    /// one of the cloud's: data, polls, reports, push, fleets; first-answer. The page then stays unchanged
    sections: Vec<String>,
    /// Also measure the largest sizes: a hundred thousand devices in the database, a simulated fleet of ten thousand
    #[arg(long)]
    large: bool,
    /// The layout with which `versions` compares: one that `cargo xtask build --release` built from another commit
    #[arg(long, value_name = "FOLDER")]
    beside: Option<PathBuf>,
}

const PAGE: &str = "docs/benchmarks.md";
const BEGIN: &str = "<!-- figures: begin -->";
const END: &str = "<!-- figures: end -->";

const OF_DEVICE: [&str; 8] = [
    "calls",
    "start",
    "endpoints",
    "docker",
    "many",
    "languages",
    "neighbours",
    "versions",
];
const OF_CLOUD: [&str; 6] = ["cloud", "data", "polls", "reports", "push", "fleets"];
/// How long an author needs from nothing to the answer of a plugin on a device, in each language. It runs only if it is
/// named: its figures are in docs/plugins.md.
const FIRST_ANSWER: &str = "first-answer";

pub(crate) fn run(arguments: &BenchArguments) -> Result<()> {
    let sections = &arguments.sections;
    let is_section = |name: &&String| {
        let name = name.as_str();
        OF_DEVICE.contains(&name) || OF_CLOUD.contains(&name) || name == FIRST_ANSWER
    };
    if let Some(unknown) = sections.iter().find(|name| !is_section(name)) {
        bail!(
            "there is no section `{unknown}`; the sections are {}, {} and {FIRST_ANSWER}",
            OF_DEVICE.join(", "),
            OF_CLOUD.join(", ")
        );
    }
    if arguments.beside.is_none() && sections.iter().any(|name| name == "versions") {
        bail!("`versions` compares with another version: name its layout with `--beside`");
    }
    let is_selected = |of: &[&str]| {
        let named = sections.iter().any(|name| of.contains(&name.as_str()));
        sections.is_empty() || named
    };
    let mut figures = String::new();
    if is_selected(&OF_DEVICE) {
        figures.push_str(&on_device(arguments)?);
    }
    if is_selected(&OF_CLOUD) {
        let is_first = figures.is_empty();
        figures.push_str(&on_cloud(arguments, is_first)?);
    }
    if sections.iter().any(|name| name == FIRST_ANSWER) {
        first_answer()?;
    }
    if sections.is_empty() {
        write_page(&figures)?;
        println!("the figures are in {PAGE}");
    }
    Ok(())
}

fn on_device(arguments: &BenchArguments) -> Result<String> {
    let layout = layout::build(&layout::BuildArguments { release: true })?;
    build_components(&guest_crates()?)?;
    let docker = match install_packages_if_debian_root().and_then(|()| PrivateDocker::start()) {
        Ok(docker) => Some(docker),
        Err(error) => {
            eprintln!("skipping the sections on Docker: {error:#}");
            None
        }
    };
    let run = "run --release --package bench --no-default-features --features device --";
    let mut bench = cargo::cargo(run.split(' '));
    bench
        .args(&arguments.sections)
        .env("SUPERVISOR_DIST", &layout.folder)
        .env("SUPERVISOR_TEST_GUESTS", components_folder());
    if let Some(beside) = &arguments.beside {
        bench.arg("--beside").arg(beside);
    }
    if let Some(docker) = &docker {
        bench
            .env("SUPERVISOR_TEST_DOCKER", docker.docker_uri())
            .env("SUPERVISOR_TEST_REGISTRY", docker.registry());
    }
    figures_of(bench)
}

fn on_cloud(arguments: &BenchArguments, is_first: bool) -> Result<String> {
    let mut programs = simulate::build("fleet-cloud")?;
    simulate::build("simulator")?;
    programs.pop();
    let postgres = for_tests::postgres();
    let run = "run --package bench --no-default-features --features cloud --profile";
    let mut bench = cargo::cargo(run.split(' '));
    bench
        .args([simulate::PROFILE, "--"])
        .args(&arguments.sections)
        .env("BENCH_PROGRAMS", programs);
    if arguments.large {
        bench.arg("--large");
    }
    if !is_first {
        bench.arg("--without-machine");
    }
    postgres.give_to(&mut bench);
    figures_of(bench)
}

/// The test of the page's commands prints how long they take.
fn first_answer() -> Result<()> {
    let layout = layout::build(&layout::BuildArguments { release: true })?;
    if let Some(skipped) = for_tests::languages() {
        skipped.account_for()?;
    }
    let arguments = "test --package supervisor-plugin --no-default-features --test tool -- --ignored --nocapture \
                     --exact documented_way::how_long_the_way_of_the_page_takes";
    let mut test = cargo::cargo(arguments.split_whitespace());
    test.env("SUPERVISOR_DIST", &layout.folder);
    cargo::finish(test)
}

/// Runs a program to its end, and shows what it prints.
fn figures_of(mut bench: Command) -> Result<String> {
    bench.stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = bench.output().context("failed to start the benchmarks")?;
    let figures = String::from_utf8_lossy(&output.stdout).into_owned();
    println!("{figures}");
    if !output.status.success() {
        bail!("the benchmarks failed ({})", output.status);
    }
    Ok(figures)
}

/// Puts the figures between the page's marks and keeps the rest of the page.
fn write_page(figures: &str) -> Result<()> {
    let path = cargo::repository().join(PAGE);
    let page = fs::read_to_string(&path).with_context(|| format!("failed to read `{PAGE}`"))?;
    let (Some((before, _)), Some((_, after))) = (page.split_once(BEGIN), page.split_once(END))
    else {
        bail!("`{PAGE}` has lost its marks `{BEGIN}` and `{END}`");
    };
    let page = format!("{before}{BEGIN}\n\n{}\n\n{END}{after}", figures.trim());
    fs::write(&path, page).with_context(|| format!("failed to write `{PAGE}`"))
}
