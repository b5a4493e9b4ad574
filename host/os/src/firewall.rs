//! The supervisor's part of the host's firewall: one table of our own in the kernel's nftables
//! (docs/spec/device.md#firewall), set with the host's own `nft`.
//!
//! [`Firewall::put`] replaces the whole table at once. Nothing here reads or changes another table: a packet has to be
//! accepted by ours and by all others, such as a container engine's. Packets that are for others than this device, and
//! ports that Docker passes on to containers, are not covered.

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

/// How long `nft` may take; it waits for other processes that change the kernel's tables.
const WITHIN: Duration = Duration::from_secs(30);
/// How much of its error message is reported, in bytes.
const COMPLAINT: usize = 512;
/// The folders of the host's programs: `nft` is in `sbin`, which is not in every environment's search path.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What the firewall lets in, in addition to connections that the device opened itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirewallRules {
    /// The port of the API, open to services and the VPN.
    pub api_port: u16,
    /// Whether the API is open to everybody: the device is in local mode.
    pub api_is_for_all: bool,
    /// The interface of the network on which services reach the API.
    pub network: String,
    /// TCP ports that are open to everybody.
    pub tcp: BTreeSet<u16>,
    /// Ports of services, open to everybody.
    pub published: BTreeSet<(Protocol, u16)>,
    /// The first and the last of the users that run services without a container. On the loopback addresses of services
    /// these users reach each other, and apart from root no other user reaches them.
    pub service_users: (u32, u32),
}

/// Why the host's firewall does not have the requested state.
#[derive(Debug, thiserror::Error)]
pub enum FirewallError {
    /// The host has no `nft`.
    #[error("`nft` is not installed on the host: install the package `nftables`")]
    NotInstalled,
    /// `nft` cannot be run.
    #[error("failed to run `nft`")]
    Run(#[source] io::Error),
    /// `nft` takes too long.
    #[error("`nft` took longer than {} s", WITHIN.as_secs())]
    TimedOut,
    /// `nft` refused the rules.
    #[error("`nft` refused the firewall's rules: {0}")]
    Refused(String),
}

/// Our part of the host's firewall.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Firewall {
    /// `None` in a rehearsal, which only logs what would be done.
    nft: Option<PathBuf>,
}

impl Firewall {
    /// The kernel's firewall, in the network namespace of this process. If `nft` is a bare name, it is looked up in the
    /// folders of the host's programs.
    #[must_use]
    pub fn from_nft(nft: impl Into<PathBuf>) -> Self {
        Firewall {
            nft: Some(nft.into()),
        }
    }

    /// A firewall that only logs what would be done.
    #[must_use]
    pub fn rehearsal() -> Self {
        Firewall { nft: None }
    }

    /// Makes the table match `rules`.
    ///
    /// # Errors
    /// [`FirewallError`]; the table is then unchanged.
    pub async fn put(&self, rules: &FirewallRules) -> Result<(), FirewallError> {
        match &self.nft {
            Some(nft) => commit(nft, &ruleset::put(rules)).await,
            None => {
                tracing::info!(
                    table = TABLE,
                    "rehearsal: would add the table `{TABLE}` to the host's firewall"
                );
                Ok(())
            }
        }
    }

    /// Removes the table; does nothing if there is none.
    ///
    /// # Errors
    /// [`FirewallError`].
    pub async fn remove(&self) -> Result<(), FirewallError> {
        match &self.nft {
            Some(nft) => commit(nft, &ruleset::remove()).await,
            None => {
                tracing::debug!(
                    table = TABLE,
                    "rehearsal: would remove the table `{TABLE}` from the host's firewall"
                );
                Ok(())
            }
        }
    }

    /// Whether the table exists: others may have cleared all tables. In a rehearsal it always counts as existing.
    ///
    /// # Errors
    /// [`FirewallError`] if that cannot be determined.
    pub async fn is_there(&self) -> Result<bool, FirewallError> {
        let Some(nft) = &self.nft else {
            return Ok(true);
        };
        // Listing a table that does not exist fails like any other error, with words that differ by version.
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
        // A terminal sends Ctrl-C to the supervisor's whole group: a change that is under way is completed.
        .process_group(0)
        .kill_on_drop(true);
    let running = async {
        let mut child = command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => FirewallError::NotInstalled,
            _ => FirewallError::Run(error),
        })?;
        if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
            // A process that ends before it has read everything reports why.
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
