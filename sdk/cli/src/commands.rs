//! The commands, one file each.

mod bench;
mod build;
mod check;
mod harness;
mod inspect;
mod install;
mod keygen;
mod new;
mod pull;
mod push;
mod run;
mod sign;
mod test;
mod trial;
mod uninstall;
mod verify;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, Result};

use crate::arguments::{Arguments, Command};
use crate::output::Output;

/// Runs the command.
///
/// # Errors
/// The command failed. A check or a test that finds something is not an error: the exit status says so.
pub(crate) fn run(command: Command, output: &Output) -> Result<ExitCode> {
    match command {
        Command::New(arguments) => new::run(&arguments, output),
        Command::Build(arguments) => build::run(arguments, output),
        Command::Inspect(arguments) => wait(inspect::run(&arguments, output)),
        Command::Keygen(arguments) => keygen::run(&arguments, output),
        Command::Sign(arguments) => sign::run(arguments, output),
        Command::Verify(arguments) => verify::run(&arguments, output),
        Command::Push(arguments) => wait(push::run(arguments, output)),
        Command::Pull(arguments) => wait(pull::run(&arguments, output)),
        Command::Install(arguments) => wait(install::run(&arguments, output)),
        Command::Uninstall(arguments) => wait(uninstall::run(&arguments, output)),
        Command::Check(arguments) => wait(check::run(&arguments, output)),
        Command::Run(arguments) => wait(run::run(&arguments, output)),
        Command::Test(arguments) => wait(test::run(&arguments, output)),
        Command::Harness { socket } => wait(harness::run(&socket)),
        Command::Bench(arguments) => wait(bench::run(&arguments, output)),
        Command::Completions { shell } => {
            let mut command = Arguments::visible_commands();
            let name = command.get_name().to_owned();
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut command, name, &mut script);
            // As long as somebody reads it: `head` may have stopped.
            let _ = std::io::stdout().write_all(&script);
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Runs commands that need the plugin host, which is asynchronous.
fn wait(command: impl Future<Output = Result<ExitCode>>) -> Result<ExitCode> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("failed to start the runtime")?
        .block_on(command)
}
