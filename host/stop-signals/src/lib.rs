//! The signals that end a program in order: `supervisor run` (docs/spec/device.md#stop) and `supervisor-plugin run`.

use std::fs;
use std::io;

use anyhow::{Context as _, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGTERM, SIGINT and SIGHUP. As soon as this exists, they no longer end the process by themselves.
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
    /// Absent if the program was started with SIGHUP ignored, as by `nohup`: it outlives its terminal.
    hangup: Option<Signal>,
}

impl StopSignals {
    /// Starts to receive the signals. Must be called in a tokio runtime.
    ///
    /// # Errors
    /// If the system refuses a handler.
    pub fn listen() -> Result<Self> {
        let listen = || -> io::Result<Self> {
            Ok(StopSignals {
                terminate: signal(SignalKind::terminate())?,
                interrupt: signal(SignalKind::interrupt())?,
                hangup: if hangup_is_ignored() {
                    None
                } else {
                    Some(signal(SignalKind::hangup())?)
                },
            })
        };
        listen().context("failed to receive SIGTERM, SIGINT and SIGHUP")
    }

    /// Waits for one of them, and returns its name.
    pub async fn received(&mut self) -> &'static str {
        let StopSignals {
            terminate,
            interrupt,
            hangup,
        } = self;
        let hangup = async {
            match hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
            _ = hangup => "SIGHUP",
        }
    }
}

/// Returns whether this process ignores SIGHUP. A system without `/proc` does not say so; then it counts as not ignored.
fn hangup_is_ignored() -> bool {
    fs::read_to_string("/proc/self/status").is_ok_and(|status| ignores_hangup(&status))
}

/// Returns whether a process with this `/proc/PID/status` ignores SIGHUP (proc_pid_status(5)).
fn ignores_hangup(status: &str) -> bool {
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // The bit of a signal is its number less one, and SIGHUP is 1.
    mask.is_some_and(|mask| mask & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whether_a_closed_terminal_is_ignored_is_the_lowest_bit_of_the_ignored_signals() {
        for (status, expected) in [
            ("SigIgn:\t0000000000000001\n", true),
            (
                "SigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\nSigCgt:\t0\n",
                true,
            ),
            (
                "SigIgn:\t0000000000001000\nSigCgt:\t0000000000000001\n",
                false,
            ),
            ("SigCgt:\t0000000000000001\n", false),
            ("SigIgn:\tno number\n", false),
            ("", false),
        ] {
            assert_eq!(ignores_hangup(status), expected, "{status}");
        }
    }
}
