//! `cargo xtask bench`: the benchmarks, in release, and their figures on docs/benchmarks.md.

use std::fs;
use std::process::Stdio;

use anyhow::{Context, Result, bail};

use crate::cargo;
use crate::layout::{self, build_components, components_folder, guest_crates};
use crate::private_docker::{PrivateDocker, install_packages_if_debian_root};
use crate::private_postgres::PostgresForTests;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only these sections: calls, start, endpoints, docker, many, neighbours, data. The page is left alone then
    sections: Vec<String>,
}

const PAGE: &str = "docs/benchmarks.md";
const BEGIN: &str = "<!-- figures: begin -->";
const END: &str = "<!-- figures: end -->";

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let layout = layout::build(&layout::Arguments { release: true })?;
    build_components(&guest_crates()?)?;

    let docker = match install_packages_if_debian_root().and_then(|()| PrivateDocker::start()) {
        Ok(docker) => Some(docker),
        Err(error) => {
            eprintln!("the sections on Docker are left out: {error:#}");
            None
        }
    };
    let postgres = PostgresForTests::find();
    let mut bench = cargo::cargo(["run", "--release", "--package", "bench", "--"]);
    bench
        .args(&arguments.sections)
        .env("SUPERVISOR_DIST", &layout.folder)
        .env("SUPERVISOR_TEST_GUESTS", components_folder())
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    postgres.give_to(&mut bench);
    if let Some(docker) = &docker {
        bench
            .env("SUPERVISOR_TEST_DOCKER", docker.docker_uri())
            .env("SUPERVISOR_TEST_REGISTRY", docker.registry());
    }
    let output = bench.output().context("failed to start the benchmarks")?;
    let figures = String::from_utf8_lossy(&output.stdout);
    println!("{figures}");
    if !output.status.success() {
        bail!("the benchmarks failed ({})", output.status);
    }
    if arguments.sections.is_empty() {
        write_page(&figures)?;
        println!("the figures are in {PAGE}");
    }
    Ok(())
}

/// Puts the figures between the page's marks and leaves the rest of it as it is.
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
