//! `cargo xtask test`: runs all tests of the workspace, after setting up everything that they need.

use std::env;
use std::process::Command;

use anyhow::{Result, bail};

use crate::cargo;
use crate::crates::guest_crates;
use crate::for_tests::{self, SkippedTests};
use crate::layout::{self, build_components, components_folder, packages_as_tested};
use crate::private_docker::{PrivateDocker, install_packages_if_debian_root};
use crate::reachable_docker::ReachableDocker;
use crate::sdk_tests;
use crate::test_programs::{TestPrograms, TestRun};

#[derive(clap::Args)]
pub(crate) struct TestArguments {
    /// The Docker engine of the tests: one that the command starts (`private`, needs root on Debian), the one that
    /// `docker` would use (`reachable`), or none; `auto` tries them in this order
    #[arg(long, value_enum, default_value = "auto", value_name = "ENGINE")]
    docker: DockerChoice,
    /// Passed on to `cargo test`, for example a crate (`--package plan`) or a test's name
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum DockerChoice {
    Auto,
    Private,
    Reachable,
    None,
}

/// The variables that the Docker suites read: the address of the engine, and of a registry that contains
/// `busybox:latest`.
const DOCKER: &str = "SUPERVISOR_TEST_DOCKER";
const REGISTRY: &str = "SUPERVISOR_TEST_REGISTRY";

pub(crate) fn run(arguments: &TestArguments) -> Result<()> {
    let everything = arguments.rest.is_empty();
    // Most of this time is spent waiting for downloads.
    let preparation = everything.then(for_tests::begin);
    // The build of the tests also builds the programs, and once is enough.
    let layout = if everything {
        layout::build_for_tests()?
    } else {
        layout::build(&UNOPTIMIZED)?
    };

    if !everything {
        println!("building the example and test components");
        build_components(&guest_crates()?)?;
    }

    let programs = if everything {
        println!("building the tests");
        let programs = TestPrograms::build(&packages_as_tested()?)?;
        layout::install_programs(&layout, &UNOPTIMIZED)?;
        Some(programs)
    } else {
        None
    };

    if preparation.is_some_and(|preparation| preparation.join().is_err()) {
        bail!("installing what the tests need panicked");
    }
    let stand_ins = for_tests::stand_ins();
    let docker = DockerForTests::find(arguments.docker);
    let postgres = for_tests::postgres();
    let chromium = for_tests::chromium();
    let nats = for_tests::nats();
    let kernel = for_tests::kernel();
    let shells = for_tests::shells();
    let languages = for_tests::languages();
    println!("running the tests");
    let prepare = |test: &mut Command| {
        test.env("SUPERVISOR_DIST", &layout.folder)
            .env("SUPERVISOR_TEST_GUESTS", components_folder());
        if env::var_os(THREADS).is_none() {
            // Most tests do not compute, but wait for programs that they started.
            let processors = std::thread::available_parallelism().map_or(1, usize::from);
            test.env(THREADS, (2 * processors).to_string());
        }
        docker.give_to(test);
        postgres.give_to(test);
        chromium.give_to(test);
        kernel.give_to(test);
    };
    match &programs {
        Some(programs) => programs.run(other_tests()?, prepare)?,
        None => {
            let mut tests = cargo::cargo(["test", "--no-fail-fast"]);
            tests.args(&arguments.rest);
            prepare(&mut tests);
            cargo::finish(tests)?;
        }
    }
    let skipped = [
        stand_ins,
        postgres.skipped,
        chromium.skipped,
        nats.skipped,
        kernel.skipped,
        shells,
        languages,
        docker.skipped(),
    ];
    skipped
        .iter()
        .flatten()
        .try_for_each(SkippedTests::account_for)
}

/// The layout that tests run.
const UNOPTIMIZED: layout::BuildArguments = layout::BuildArguments { release: false };
/// The number of tests of one program that run concurrently.
const THREADS: &str = "RUST_TEST_THREADS";

/// Returns the tests that are not in the programs of cargo's build of all tests.
fn other_tests() -> Result<Vec<TestRun>> {
    let mut examples = cargo::cargo(["test", "--no-fail-fast", "--doc"]);
    examples.args(packages_as_tested()?);
    let examples = TestRun {
        name: "the examples in doc comments".to_owned(),
        command: examples,
    };
    Ok([examples]
        .into_iter()
        .chain(sdk_tests::commands())
        .collect())
}

/// The engine of the Docker suites.
enum DockerForTests {
    /// An engine of the caller, who names it in the environment.
    Named,
    /// Our own engine; it ends with this value.
    Private(PrivateDocker),
    /// The machine's engine; everything that the tests created in it is removed with this value.
    Reachable(ReachableDocker),
    /// No engine, and the reason.
    Missing(String),
}

/// A way to get an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Named,
    Private,
    Reachable,
}

/// Returns the ways to try, in this order. Our own engine comes first, because the machine's belongs to somebody.
fn ways(choice: DockerChoice, named: bool) -> &'static [Way] {
    match (choice, named) {
        (DockerChoice::Auto, true) => &[Way::Named],
        (DockerChoice::Auto, false) => &[Way::Private, Way::Reachable],
        (DockerChoice::Private, _) => &[Way::Private],
        (DockerChoice::Reachable, _) => &[Way::Reachable],
        (DockerChoice::None, _) => &[],
    }
}

impl DockerForTests {
    fn find(choice: DockerChoice) -> Self {
        let named = env::var_os(DOCKER).is_some() && env::var_os(REGISTRY).is_some();
        let mut reasons = Vec::new();
        for way in ways(choice, named) {
            match Self::start(*way) {
                Ok(docker) => return docker,
                Err(error) => {
                    let reason = format!("{error:#}");
                    println!("Docker suites: {reason}");
                    reasons.push(reason);
                }
            }
        }
        if reasons.is_empty() {
            reasons.push("--docker none was given".into());
        }
        DockerForTests::Missing(reasons.join("; and "))
    }

    fn start(way: Way) -> Result<Self> {
        Ok(match way {
            Way::Named => {
                println!("Docker suites: the engine that {DOCKER} names");
                DockerForTests::Named
            }
            Way::Private => {
                install_packages_if_debian_root()?;
                let docker = PrivateDocker::start()?;
                println!("Docker suites: a private engine at {}", docker.docker_uri());
                DockerForTests::Private(docker)
            }
            Way::Reachable => {
                let docker = ReachableDocker::start()?;
                println!(
                    "Docker suites: the engine at {}, with a registry of ours in it; what the tests make \
                     there is removed at the end",
                    docker.docker_uri()
                );
                DockerForTests::Reachable(docker)
            }
        })
    }

    fn give_to(&self, command: &mut Command) {
        let (engine, registry) = match self {
            DockerForTests::Private(docker) => (docker.docker_uri(), docker.registry()),
            DockerForTests::Reachable(docker) => {
                (docker.docker_uri().to_owned(), docker.registry())
            }
            DockerForTests::Named => return,
            DockerForTests::Missing(_) => {
                command.env_remove(DOCKER).env_remove(REGISTRY);
                return;
            }
        };
        command.env(DOCKER, engine).env(REGISTRY, registry);
    }

    /// Returns the tests that are skipped without an engine.
    fn skipped(&self) -> Option<SkippedTests> {
        let DockerForTests::Missing(reason) = self else {
            return None;
        };
        Some(SkippedTests {
            tests: "all suites on Docker",
            reason: reason.clone(),
            remedy: Some(format!(
                "set {DOCKER} to an engine's address (unix://…) and {REGISTRY} to a registry (127.0.0.1:PORT) that holds \
                 busybox:latest"
            )),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_of_our_own_is_tried_before_the_machines() {
        use DockerChoice::{Auto, None, Private, Reachable};
        for (choice, named, expected) in [
            (Auto, true, &[Way::Named][..]),
            (Auto, false, &[Way::Private, Way::Reachable]),
            (Private, true, &[Way::Private]),
            (Reachable, false, &[Way::Reachable]),
            (None, true, &[]),
        ] {
            assert_eq!(ways(choice, named), expected, "{choice:?} {named}");
        }
    }
}
