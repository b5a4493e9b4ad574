//! Where the log goes: standard error, in short lines; without times and colours where the journal adds
//! its own.

use std::io::IsTerminal;

use anyhow::{Context, Result};
use tracing_subscriber::EnvFilter;

/// Starts to log what `filter` lets through.
///
/// # Errors
/// Where `filter` is not one.
pub(crate) fn start(filter: &str) -> Result<()> {
    let filter = EnvFilter::builder()
        .parse(filter)
        .with_context(|| format!("`{filter}` is not a log filter, such as `info,access=debug`"))?;
    let in_journal = std::env::var_os("JOURNAL_STREAM").is_some();
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(!in_journal && std::io::stderr().is_terminal())
        .compact();
    if in_journal {
        log.without_time().init();
    } else {
        log.init();
    }
    Ok(())
}
