//! Generates the code of the capabilities whose functions only pass values, from their interfaces in `wit/`. Plugins run
//! in another process than their host, so there are two ends of a socket:
//!
//! - [`protocol`] is for `plugin-protocol`: for each function a row in the table of calls, for each type of the
//!   interface one that can be sent, and for each interface a trait `Host` that the host implements;
//! - [`runtime`] is for `plugin-runtime`: the functions that an instance calls, which send these calls to the host.
//!
//! Their build scripts call [`write`]; the generated files are in `target/*/build/CRATE-*/out/wit.rs`. Capabilities with
//! resources, streams or types of other interfaces are written by hand (`interface.rs` lists them).

#![warn(missing_docs)]

mod interface;
mod protocol;
mod runtime;

use std::env;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

pub use interface::Interface;
pub use protocol::protocol;
pub use runtime::runtime;

/// The interfaces, for a build script in `host/CRATE`.
const WIT: &str = "../../wit";

/// Writes `wit.rs` into the output folder of the build script that calls it.
///
/// # Errors
/// If an interface is not valid, or has something that cannot be generated: the error names it.
pub fn write(generate: fn(&[Interface<'_>]) -> Result<String>) -> Result<()> {
    println!("cargo::rerun-if-changed={WIT}");
    let folder = env::var_os("OUT_DIR").context("cargo has not set OUT_DIR")?;
    let file = Path::new(&folder).join("wit.rs");
    let code = interface::generate(Path::new(WIT), generate)?;
    fs::write(&file, indented(&code)).with_context(|| format!("cannot write `{}`", file.display()))
}

/// Indents code for whoever follows a compiler's message to it. Each brace that stays open is the last of its line.
fn indented(code: &str) -> String {
    let mut depth: usize = 0;
    let lines = code.lines().map(|line| {
        depth -= usize::from(line.starts_with('}')).min(depth);
        let indented = format!("{}{line}", "    ".repeat(depth));
        let indented = indented.trim_end().to_owned() + "\n";
        depth += usize::from(line.ends_with('{') && !line.starts_with("//"));
        indented
    });
    lines.collect()
}

#[cfg(test)]
mod tests;
