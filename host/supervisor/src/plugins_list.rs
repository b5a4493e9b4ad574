//! `supervisor plugins list`: the plugins of the running supervisor, else those that it would load.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use plugins::{DataError, HostServices, Identity, Plugins};
use serde_json::Value;

use crate::arguments::Flags;
use crate::configuration::{self, Configuration};
use crate::facts::Board;
use crate::host::Host;
use crate::{address, parts, walls};

/// How long the running supervisor may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(35);

/// Prints them, a line each, with why a plugin was refused below it.
///
/// # Errors
/// Where the running supervisor does not answer, and where plugins cannot be loaded at all.
pub(crate) fn list(flags: Flags) -> Result<()> {
    let configuration = configuration::resolve(flags)?;
    let report = match address::of_running(&configuration.state_dir) {
        Some(address) => of_running(address, &configuration.state_dir)?,
        None => of_folders(&configuration)?,
    };
    print!("{}", table(&report));
    Ok(())
}

/// Asks the supervisor that runs.
fn of_running(address: SocketAddr, state_dir: &Path) -> Result<Value> {
    let key = store::read_global_key(state_dir)?;
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&address, ANSWER_WITHIN)?;
        stream.set_read_timeout(Some(ANSWER_WITHIN))?;
        let head = format!(
            "GET /v3/plugins HTTP/1.0\r\nHost: {address}\r\nAuthorization: Bearer {}\r\n\r\n",
            key.reveal()
        );
        stream.write_all(head.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    let answer = ask().with_context(|| format!("the supervisor at {address} does not answer"))?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.lines().next().unwrap_or_default();
    if !status.contains(" 200 ") {
        bail!("the supervisor at {address} answered `{status}`");
    }
    let mut body: Value = serde_json::from_str(body)
        .with_context(|| format!("the supervisor at {address} did not answer with JSON"))?;
    Ok(body["plugins"].take())
}

/// Loads the plugins as `supervisor run` would, and calls none. What it compiles for that is thrown
/// away, since the state folder may not be there, or not be ours to write.
fn of_folders(configuration: &Configuration) -> Result<Value> {
    let scratch = tempfile::tempdir().context("failed to make a temporary folder")?;
    let rule = walls::rule(configuration);
    let cache = walls::cache(configuration, scratch.path(), &rule)?;
    let mut configuration = configuration.clone();
    configuration.state_dir = scratch.path().to_owned();
    let board = Board::read(&configuration.device_type, &configuration.host_root);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let plugin_runtime = parts::plugin_runtime(&configuration, rule);
        let host = Host::new(&configuration);
        let config = parts::plugins_config(
            &configuration,
            cache,
            plugin_runtime.clone(),
            HostServices {
                os: host.os,
                journal: host.journal,
                data: Arc::new(Idle),
                device: Arc::new(StoppedDevice(board)),
                locks: Arc::new(plugins::Unavailable),
                host_name: Arc::new(plugins::Unavailable),
                cloud: Arc::new(plugins::NoCloud),
            },
        );
        let plugins = Plugins::start(config)?;
        plugins.loaded().await;
        let report = serde_json::to_value(plugins.report())?;
        plugins.shutdown().await;
        plugin_runtime.stop().await;
        Ok(report)
    })
}

/// The board of a device that does not run: enough to tell which plugins are for it.
struct StoppedDevice(Board);

impl plugins::Device for StoppedDevice {
    fn identity(&self) -> Identity {
        Identity {
            uuid: "0".repeat(32),
            name: crate::device::UNNAMED.to_owned(),
            device_type: self.0.device_type.clone(),
            arch: self.0.arch.clone(),
        }
    }

    fn state(&self) -> Value {
        Value::Null
    }
}

/// The store of plugins that are not called.
struct Idle;

impl plugins::PluginData for Idle {
    fn get(&self, _: &str, _: &str) -> Result<Option<Vec<u8>>, DataError> {
        Ok(None)
    }

    fn set(&self, _: &str, _: &str, _: &[u8]) -> Result<(), DataError> {
        Err(DataError::Other("the supervisor is not running".into()))
    }

    fn delete(&self, _: &str, _: &str) -> Result<(), DataError> {
        Err(DataError::Other("the supervisor is not running".into()))
    }

    fn keys(&self, _: &str, _: &str) -> Result<Vec<String>, DataError> {
        Ok(Vec::new())
    }
}

/// Columns as wide as they need to be.
fn table(report: &Value) -> String {
    let Some(plugins) = report.as_array().filter(|plugins| !plugins.is_empty()) else {
        return "no plugins\n".to_owned();
    };
    let titles = [
        "NAME", "VERSION", "STATE", "CALLS", "FAILURES", "GRANTS", "ROUTES",
    ];
    let rows: Vec<[String; 7]> = plugins.iter().map(row).collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([titles[column].len()]).max().unwrap_or(0)
    };
    let widths: [usize; 7] = std::array::from_fn(width);
    let mut text = line(&titles.map(str::to_owned), &widths);
    for (row, plugin) in rows.iter().zip(plugins) {
        text.push_str(&line(row, &widths));
        if let Some(refused) = plugin["refused"].as_str() {
            for reason in refused.lines() {
                text.push_str(&format!("  {reason}\n"));
            }
        }
    }
    text
}

fn row(plugin: &Value) -> [String; 7] {
    let word = |key: &str| match &plugin[key] {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let list = |key: &str, show: fn(&Value) -> String| {
        let items: Vec<String> = plugin[key]
            .as_array()
            .map(|items| items.iter().map(show).collect())
            .unwrap_or_default();
        if items.is_empty() {
            "-".to_owned()
        } else {
            items.join(", ")
        }
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    [
        word("name"),
        word("version"),
        match plugin["unpinned"].as_bool() {
            Some(true) => format!("{}, unpinned", word("state")),
            _ => word("state"),
        },
        word("calls"),
        word("failures"),
        list("grants", text),
        list("routes", |route| {
            let part = |key: &str| route[key].as_str().unwrap_or_default().to_owned();
            format!("{} {}", part("method"), part("path"))
        }),
    ]
}

fn line(cells: &[String; 7], widths: &[usize; 7]) -> String {
    let padded: Vec<String> = cells
        .iter()
        .zip(widths)
        .map(|(cell, width)| format!("{cell:width$}"))
        .collect();
    format!("{}\n", padded.join("  ").trim_end())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn plugins_are_listed_in_columns_with_why_one_was_refused() {
        let report = json!([
            {
                "name": "device-info", "version": "0.1.0", "state": "running", "calls": 12,
                "failures": 0, "grants": ["device"],
                "routes": [{"method": "GET", "path": "/v2/device/name"}],
            },
            {"name": "x.wasm", "state": "refused", "calls": 0, "failures": 0, "refused": "no manifest\nin it"},
        ]);
        assert_eq!(
            table(&report),
            "NAME         VERSION  STATE    CALLS  FAILURES  GRANTS  ROUTES\n\
             device-info  0.1.0    running  12     0         device  GET /v2/device/name\n\
             x.wasm       -        refused  0      0         -       -\n  no manifest\n  in it\n"
        );
        assert_eq!(table(&json!([])), "no plugins\n");
    }
}
