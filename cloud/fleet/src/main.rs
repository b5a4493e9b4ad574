//! `fleet`: the command line of the fleet cloud.
//!
//! It is an ordinary HTTP client of the cloud, and uses only its API.

mod arguments;
mod ask;
mod cloud;
mod commands;
mod deploy;
mod failure;
mod files;
mod find;
mod interrupt;
mod odata;
mod output;
mod rows;
mod run;
mod session;
mod words;

use std::process::ExitCode;

use clap::Parser as _;

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::output::Output;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        // A program that requests JSON also expects errors in its arguments as JSON.
        Err(error) if error.use_stderr() && std::env::args().any(|it| it == "--json") => {
            let message = error.to_string();
            let (first, rest) = message.split_once('\n').unwrap_or((&message, ""));
            let failure = Failure::usage(first.trim_start_matches("error: "));
            let failure = match rest.trim() {
                "" => failure,
                rest => failure.hint(rest),
            };
            Output::new(true).failure(&failure);
            return failure.exit_code();
        }
        Err(error) => error.exit(),
    };
    let output = Output::new(arguments.json);
    match run::run(arguments, &output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output.failure(&failure);
            failure.exit_code()
        }
    }
}
