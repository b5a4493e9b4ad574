//! Serves one container as `supervisor wasm-service --record FOLDER` does, for work on the wasm engine
//! without the whole supervisor.

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["wasm-service", "--record", folder] => wasm_runner::run(&PathBuf::from(folder)),
        _ => {
            eprintln!("usage: wasm-service --record FOLDER");
            ExitCode::from(2)
        }
    }
}
