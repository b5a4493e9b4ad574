//! `fleet`: the command line of the fleet cloud.
//!
//! It asks the cloud over HTTP as any client does, and knows nothing that the API does not say.

mod arguments;
mod ask;
mod cloud;
mod commands;
mod deploy;
mod failure;
mod find;
mod odata;
mod output;
mod rows;
mod run;
mod session;

use std::process::ExitCode;

use clap::Parser as _;

use crate::arguments::Arguments;
use crate::output::Output;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let output = Output::new(arguments.json);
    match run::run(arguments, &output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output.failure(&failure);
            failure.exit_code()
        }
    }
}
