//! The log's output: standard error, in short lines; without times and colours if the journal adds
//! its own.

use std::io::IsTerminal;

use anyhow::{Context, Result};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Starts to log the events that `filter` selects.
///
/// # Errors
/// If `filter` is not valid.
pub(crate) fn start(filter: &str) -> Result<()> {
    // Not `EnvFilter`, which has more features and requires a regular-expression engine for them.
    let filter: Targets = filter
        .parse()
        .with_context(|| format!("`{filter}` is not a log filter, such as `info,access=debug`"))?;
    let in_journal = std::env::var_os("JOURNAL_STREAM").is_some();
    let lines = fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(!in_journal && std::io::stderr().is_terminal())
        .compact();
    let log = tracing_subscriber::registry().with(filter);
    if in_journal {
        log.with(lines.without_time()).init();
    } else {
        log.with(lines).init();
    }
    Ok(())
}
