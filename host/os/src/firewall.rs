//! A firewall of the host's: one table of our own in the kernel's nftables (docs/spec/device.md#firewall), by the
//! host's own `nft`.
//!
//! [`Firewall::put`] replaces the table as a whole and at once, and nothing here looks at another table or changes one:
//! a packet has to be let in by ours and by all others, such as a container engine's. What comes in for others than
//! this device, and ports that Docker passes on to containers, is none of its business.

mod ruleset;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use model::Protocol;
use ruleset::{FAMILY, TABLE};
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

/// How long `nft` may take; it waits for others that change the kernel's tables.
const WITHIN: Duration = Duration::from_secs(30);
/// How much of what it complains of is told, in bytes.
const COMPLAINT: usize = 512;
/// Where the host has its programs: `nft` is in `sbin`, which not every environment has.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What the firewall lets in, beside what the device began itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirewallRules {
    /// The port of the API: for services and the VPN.
    pub api_port: u16,
    /// It is for everybody: the device is in local mode.
    pub api_is_for_all: bool,
    /// The interface of the network by which services reach the API.
    pub network: String,
    /// TCP ports that are for everybody.
    pub tcp: BTreeSet<u16>,
    /// Ports of services, for everybody.
    pub published: BTreeSet<(Protocol, u16)>,
    /// The users of services that are no containers, the first and the last: on the loopback addresses of services they
    /// meet each other, and no other user but root meets them.
    pub service_users: (u32, u32),
}

/// Why the host's firewall is not as it should be.
#[derive(Debug, thiserror::Error)]
pub enum FirewallError {
    /// The host has no `nft`.
    #[error("`nft` is not installed on the host: install the package `nftables`")]
    NotInstalled,
    /// It cannot be run.
    #[error("failed to run `nft`")]
    Run(#[source] io::Error),
    /// It takes too long.
    #[error("`nft` took longer than {} s", WITHIN.as_secs())]
    TimedOut,
    /// It did not do what it was told.
    #[error("`nft` refused the firewall's rules: {0}")]
    Refused(String),
}

/// The host's firewall, as far as it is ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Firewall {
    /// `None` only says what would be done.
    nft: Option<PathBuf>,
}

impl Firewall {
    /// That of the kernel, of the network namespace that this process is in. `nft` is looked up in the folders of the
    /// host's programs where it is a bare name.
    #[must_use]
    pub fn of_kernel(nft: impl Into<PathBuf>) -> Self {
        Firewall {
            nft: Some(nft.into()),
        }
    }

    /// One that only says in the log what would be done.
    #[must_use]
    pub fn rehearsal() -> Self {
        Firewall { nft: None }
    }

    /// Makes the table be as `rules` say.
    ///
    /// # Errors
    /// [`FirewallError`]; then it is as it was before.
    pub async fn put(&self, rules: &FirewallRules) -> Result<(), FirewallError> {
        match &self.nft {
            Some(nft) => commit(nft, &ruleset::put(rules)).await,
            None => {
                tracing::info!("rehearsal: would add the table `{TABLE}` to the host's firewall");
                Ok(())
            }
        }
    }

    /// Takes the table away; nothing where there is none.
    ///
    /// # Errors
    /// [`FirewallError`].
    pub async fn remove(&self) -> Result<(), FirewallError> {
        match &self.nft {
            Some(nft) => commit(nft, &ruleset::remove()).await,
            None => {
                tracing::debug!(
                    "rehearsal: would remove the table `{TABLE}` from the host's firewall"
                );
                Ok(())
            }
        }
    }

    /// Whether the table is there: others may have cleared all tables. A rehearsed one counts as there once it was put.
    ///
    /// # Errors
    /// [`FirewallError`] where that cannot be told.
    pub async fn is_there(&self) -> Result<bool, FirewallError> {
        let Some(nft) = &self.nft else {
            return Ok(true);
        };
        // To list a table that is not there is a failure like any other, told in words that differ by version.
        let listed = run(nft, &["--json", "list", "tables"], None).await?;
        if !listed.status.success() {
            return Err(refused(&listed));
        }
        let listed: Value = serde_json::from_slice(&listed.stdout)
            .map_err(|error| FirewallError::Refused(error.to_string()))?;
        let objects = listed.get("nftables").and_then(Value::as_array);
        let mut tables = objects
            .into_iter()
            .flatten()
            .filter_map(|of| of.get("table"));
        Ok(tables.any(|table| {
            let is = |key, what: &str| table.get(key).and_then(Value::as_str) == Some(what);
            is("family", FAMILY) && is("name", TABLE)
        }))
    }
}

async fn commit(nft: &Path, commands: &Value) -> Result<(), FirewallError> {
    let done = run(nft, &["--json", "--file", "-"], Some(commands)).await?;
    if done.status.success() {
        Ok(())
    } else {
        Err(refused(&done))
    }
}

async fn run(
    nft: &Path,
    arguments: &[&str],
    input: Option<&Value>,
) -> Result<Output, FirewallError> {
    let mut command = Command::new(nft);
    command
        .args(arguments)
        .env_clear()
        .env("PATH", PATH)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let running = async {
        let mut child = command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => FirewallError::NotInstalled,
            _ => FirewallError::Run(error),
        })?;
        if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
            // One that ends before it has read everything says why.
            let _ = stdin.write_all(input.to_string().as_bytes()).await;
        }
        child.wait_with_output().await.map_err(FirewallError::Run)
    };
    let done = tokio::time::timeout(WITHIN, running).await;
    done.unwrap_or(Err(FirewallError::TimedOut))
}

fn refused(output: &Output) -> FirewallError {
    let stderr = String::from_utf8_lossy(&output.stderr);
    let words: Vec<&str> = stderr.split_whitespace().collect();
    let mut message = words.join(" ");
    message.truncate(message.floor_char_boundary(COMPLAINT));
    if message.is_empty() {
        message = output.status.to_string();
    }
    FirewallError::Refused(message)
}

#[cfg(test)]
mod tests;
