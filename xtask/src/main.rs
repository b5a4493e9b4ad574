//! The chores of this repository: `cargo xtask --help` is the manual.
//!
//! Every set-up step is here, so a fresh clone needs only rustup and a C compiler.

mod bench;
mod busybox;
mod cargo;
mod check;
mod citations;
mod crates;
mod doc_tests;
mod docker_address;
mod docker_images;
mod for_tests;
mod fuzz;
mod import_circles;
mod installed_tool;
mod interrupted;
mod layout;
mod names;
mod owned_folder;
mod packages;
mod phrases;
mod private_docker;
mod private_postgres;
mod processes;
mod reachable_docker;
mod run;
mod rust_code;
mod sbom;
mod sdk_tests;
mod simulate;
mod stock_plugins;
mod struct_sizes;
mod supply_chain;
mod test;
mod test_kernel;
mod test_programs;
mod text_files;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    about = "Builds, runs, tests and measures the device supervisor"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build everything, and start a cloud, a registry and a device that follows a sample release
    Run(run::RunArguments),
    /// Set up everything that the tests need, and run all tests of the workspace
    Test(test::TestArguments),
    /// Build the programs and plugins into target/dist, in a layout that runs wherever you copy it
    Build(layout::BuildArguments),
    /// Measure speed and memory, and write the figures into docs/benchmarks.md
    Bench(bench::BenchArguments),
    /// Simulate a fleet: devices with the real link to a cloud and nothing behind it (see its `--help`)
    Simulate(simulate::SimulateArguments),
    /// Start the Docker engine and the registry of the tests, and keep them running until Ctrl-C
    #[command(hide = true)]
    DockerForTests,
    /// Start the PostgreSQL server of the tests, and keep it running until Ctrl-C
    #[command(hide = true)]
    PostgresForTests,
    /// Check formatting, names, phrases, struct sizes, imports, documentation tests, citations, lints, dependencies, as
    /// continuous integration does
    Check,
    /// Fuzz parsers, statements and endpoints
    Fuzz(fuzz::FuzzArguments),
    /// Install `supervisor-plugin` with `cargo install`, and create, test and check a plugin with it outside of this
    /// repository
    InstalledTool,
    /// Check only the dependencies: licences, sources, duplicate and yanked versions, known vulnerabilities
    Dependencies,
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Run(arguments) => run::run(arguments),
        Command::Test(arguments) => test::run(&arguments),
        Command::Build(arguments) => layout::build(&arguments).map(|layout| {
            println!("the layout is in {}", layout.folder.display());
        }),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Simulate(arguments) => simulate::run(&arguments),
        Command::DockerForTests => private_docker::run_in_foreground(),
        Command::PostgresForTests => private_postgres::run_in_foreground(),
        Command::Check => check::run(),
        Command::Fuzz(arguments) => fuzz::run(&arguments),
        Command::InstalledTool => installed_tool::check(),
        Command::Dependencies => supply_chain::check(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            for cause in error.chain().skip(1) {
                eprintln!("  caused by: {cause}");
            }
            ExitCode::FAILURE
        }
    }
}
