//! Programs that a session starts: detached from the terminal, and ended properly.

use std::io;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::process::{Signal, kill_process};

use super::LOOK_AGAIN;
use super::http_client::http_client;
use crate::processes;

/// Gives a program its own process group: Ctrl-C in a terminal reaches the whole group, and the
/// program must run until we end it.
pub(super) fn apart_from_the_terminal(command: &mut Command) -> &mut Command {
    use std::os::unix::process::CommandExt as _;
    command.process_group(0).stdin(Stdio::null())
}

/// Waits until something answers at `url`; returns `false` if it takes longer.
///
/// # Errors
/// What `runs` reports about a program that has ended.
pub(super) async fn answers(
    url: &str,
    within: Duration,
    mut runs: impl FnMut() -> Result<()>,
) -> Result<bool> {
    let client = http_client()?;
    let deadline = Instant::now() + within;
    while client.get(url).send().await.is_err() {
        runs()?;
        if Instant::now() > deadline {
            return Ok(false);
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    Ok(true)
}

/// Ends them all: with SIGTERM, and with SIGKILL if they still run after `grace`.
pub(super) async fn end(children: &mut [Child], grace: Duration) -> io::Result<()> {
    for child in &mut *children {
        if let Some(pid) = processes::pid(child.id())
            && child.try_wait()?.is_none()
        {
            kill_process(pid, Signal::TERM)?;
        }
    }
    let deadline = Instant::now() + grace;
    for child in children {
        while child.try_wait()?.is_none() {
            if Instant::now() > deadline {
                child.kill()?;
                child.wait()?;
                break;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
    Ok(())
}
