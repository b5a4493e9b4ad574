//! `cargo xtask test`: all tests of the workspace, with everything they need set up first.

use std::env;
use std::process::Command;

use anyhow::{Result, bail};

use crate::cargo;
use crate::host_stand_ins::HostStandIns;
use crate::layout::{self, build_components, components_folder, crates_in, guest_crates};
use crate::private_docker::{PrivateDocker, install_packages_if_debian_root};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Passed on to `cargo test`, for example a crate (`--package plan`) or a test's name
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

/// The variables that the Docker suites read: the engine's address, and a registry's that holds
/// `busybox:latest`.
const DOCKER: &str = "SUPERVISOR_TEST_DOCKER";
const REGISTRY: &str = "SUPERVISOR_TEST_REGISTRY";

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let layout = layout::build(&layout::Arguments { release: false })?;

    println!("building the example and test components");
    build_components(&guest_crates()?)?;

    let stand_ins = HostStandIns::find();
    let docker = DockerForTests::find();
    println!("running the tests");
    let mut test = cargo::cargo(["test", "--no-fail-fast"]);
    test.env("SUPERVISOR_DIST", &layout.folder)
        .env("SUPERVISOR_TEST_GUESTS", components_folder())
        .args(&arguments.rest);
    docker.give_to(&mut test);
    cargo::finish(test)?;
    if arguments.rest.is_empty() {
        // They are no default members, since a bare `cargo build` would build them for this machine.
        let mut test = cargo::cargo(["test", "--no-fail-fast"]);
        test.env("SUPERVISOR_DIST", &layout.folder);
        test.args([
            "--package",
            "supervisor-sdk",
            "--package",
            "supervisor-testing",
        ]);
        for plugin in plugin_crates()? {
            test.args(["--package", &plugin]);
        }
        cargo::finish(test)?;

        // By itself, since its code generator must not be unified into the others.
        let arguments = [
            "test",
            "--profile",
            "compiler",
            "--package",
            "supervisor-compile",
        ];
        cargo::finish(cargo::cargo(arguments))?;
    }
    stand_ins.account_for_skips()?;
    docker.account_for_skips()
}

/// Where the Docker suites find an engine.
enum DockerForTests {
    /// The caller has one and names it in the environment.
    Named,
    /// Ours; it ends with this value.
    Private(PrivateDocker),
    /// None, and why.
    Missing(String),
}

impl DockerForTests {
    fn find() -> Self {
        if env::var_os(DOCKER).is_some() && env::var_os(REGISTRY).is_some() {
            println!("Docker suites: the engine that {DOCKER} names");
            return DockerForTests::Named;
        }
        match install_packages_if_debian_root().and_then(|()| PrivateDocker::start()) {
            Ok(docker) => {
                println!("Docker suites: a private engine at {}", docker.docker_uri());
                DockerForTests::Private(docker)
            }
            Err(error) => DockerForTests::Missing(format!("{error:#}")),
        }
    }

    fn give_to(&self, command: &mut Command) {
        if let DockerForTests::Private(docker) = self {
            command
                .env(DOCKER, docker.docker_uri())
                .env(REGISTRY, docker.registry());
        }
    }

    /// Says what was skipped; in continuous integration nothing may be.
    fn account_for_skips(&self) -> Result<()> {
        let DockerForTests::Missing(reason) = self else {
            return Ok(());
        };
        if env::var_os("CI").is_some() {
            bail!("the Docker suites were skipped: {reason}");
        }
        println!(
            "\nskipped: all suites on Docker, because {reason}\n\
             to run them, set {DOCKER} to an engine's address (unix://…) and {REGISTRY} to a registry \
             (127.0.0.1:PORT) that holds busybox:latest"
        );
        Ok(())
    }
}

/// The crates of plugins, the examples among them: those that are written with the SDK.
fn plugin_crates() -> Result<Vec<String>> {
    let mut crates = crates_in("plugins")?;
    for example in crates_in("examples")? {
        let manifest = cargo::repository()
            .join("examples")
            .join(&example)
            .join("Cargo.toml");
        if std::fs::read_to_string(manifest)?.contains("supervisor-sdk") {
            crates.push(example);
        }
    }
    Ok(crates)
}
