//! Access to the supervisor that runs on a state folder, for other commands: over its own API, with the device's key.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use model::ApiKey;
use serde_json::Value;

use crate::address;

/// How long it may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(35);
/// The longest answer that is read, in bytes.
const MOST: u64 = 16 << 20;

/// A running supervisor.
pub(crate) struct RunningSupervisor {
    address: SocketAddr,
    key: ApiKey,
}

/// An answer of the supervisor.
pub(crate) struct RunningAnswer {
    address: SocketAddr,
    /// The status line.
    status: String,
    body: Value,
}

impl RunningSupervisor {
    /// Returns the supervisor that runs on this state folder; `None` if there is none, or it does
    /// not listen yet.
    ///
    /// # Errors
    /// The device's key cannot be read.
    pub(crate) fn find(state_dir: &Path) -> Result<Option<RunningSupervisor>> {
        let Some(address) = address::find_running(state_dir) else {
            return Ok(None);
        };
        let key = store::read_global_key(state_dir)?;
        Ok(Some(RunningSupervisor { address, key }))
    }

    /// Returns the names of its plugins in backticks, sorted.
    ///
    /// # Errors
    /// As [`RunningSupervisor::get`].
    pub(crate) fn plugin_names(&self) -> Result<Vec<String>> {
        let body = self.get("/v3/plugins")?.ok()?;
        let plugins = body["plugins"].as_array().into_iter().flatten();
        let names = plugins.filter_map(|plugin| Some(format!("`{}`", plugin["name"].as_str()?)));
        Ok(names.collect())
    }

    /// Requests a path that returns JSON.
    ///
    /// # Errors
    /// It does not answer, or not with JSON.
    pub(crate) fn get(&self, path: &str) -> Result<RunningAnswer> {
        let address = self.address;
        let ask = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect_timeout(&address, ANSWER_WITHIN)?;
            stream.set_read_timeout(Some(ANSWER_WITHIN))?;
            let head = format!(
                "GET {path} HTTP/1.0\r\nHost: {address}\r\nAuthorization: Bearer {}\r\n\r\n",
                self.key.reveal()
            );
            stream.write_all(head.as_bytes())?;
            let mut answer = String::new();
            stream.take(MOST).read_to_string(&mut answer)?;
            Ok(answer)
        };
        let answer =
            ask().with_context(|| format!("the supervisor at {address} does not answer"))?;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.lines().next().unwrap_or_default().to_owned();
        let body = serde_json::from_str(body).with_context(|| {
            format!("the supervisor at {address} answered `{status}`, and not with JSON")
        })?;
        Ok(RunningAnswer {
            address,
            status,
            body,
        })
    }
}

impl RunningAnswer {
    /// Returns whether the supervisor does not have what was requested.
    pub(crate) fn is_not_found(&self) -> bool {
        self.status.contains(" 404 ")
    }

    /// Returns the body, if the answer is a 200.
    ///
    /// # Errors
    /// The supervisor's message, for any other status.
    pub(crate) fn ok(self) -> Result<Value> {
        if self.status.contains(" 200 ") {
            return Ok(self.body);
        }
        match self.body["message"].as_str() {
            Some(message) => bail!("{message}"),
            None => bail!(
                "the supervisor at {} answered `{}`",
                self.address,
                self.status
            ),
        }
    }
}
