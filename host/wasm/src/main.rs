//! `supervisor-wasm`: the program that runs components, as a process next to the supervisor, which starts it.
//!
//! It contains nothing of the supervisor: no API, no store, no connection to the cloud, and no key. Whoever
//! breaks out of a component finds only what is needed to run components.

mod plugins;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

#[derive(Parser)]
#[command(about = "Runs WebAssembly components; the supervisor starts it")]
enum Command {
    /// Runs one service; started by the supervisor's wasm engine
    WasmService {
        /// The folder of the container
        #[arg(long)]
        record: PathBuf,
    },
    /// Runs plugins, for the supervisor at the other end of its standard input
    Plugins(plugins::Arguments),
}

fn main() -> ExitCode {
    match Command::parse() {
        Command::WasmService { record } => wasm_runner::run(&record),
        Command::Plugins(arguments) => plugins::run(&arguments),
    }
}
