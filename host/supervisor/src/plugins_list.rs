//! `supervisor plugins list` and `check`: the plugins of the running supervisor, or those that it would load.

use std::path::Path;

use anyhow::{Result, bail};
use plugin_manifest::LIMITS;
use serde_json::{Value, json};

use crate::arguments::Flags;
use crate::configuration::{self, Configuration};
use crate::running_supervisor::RunningSupervisor;
use crate::{offline_plugins, output};

/// Prints the plugins, a line each, followed by the reason for a refusal and the last failure.
///
/// # Errors
/// If the running supervisor does not answer, or if plugins cannot be loaded at all.
pub(crate) fn list(flags: Flags, json: bool) -> Result<()> {
    let configuration = configuration::resolve(flags)?;
    let listing = Listing::read(&configuration)?;
    if json {
        return output::print_json(&listing.json());
    }
    if !listing.is_running {
        output::note(format_args!(
            "no supervisor is running with the state folder `{}` (--state-dir or --config names another): these are the plugins that one would load",
            configuration.state_dir.display()
        ));
    }
    output::print(listing.text())
}

/// Prints the plugins in the same way.
///
/// # Errors
/// As [`list`], and if a plugin is refused or the policy is invalid.
pub(crate) fn check(flags: Flags, json: bool) -> Result<()> {
    let listing = Listing::read(&configuration::resolve(flags)?)?;
    if json {
        output::print_json(&listing.json())?;
    } else {
        output::print(listing.text())?;
    }
    let is_refused = |plugin: &&Value| plugin["refused"].is_string();
    let refused = listing.plugins.iter().filter(is_refused).count();
    if listing.policy_error.is_some() {
        bail!("the policy is invalid");
    }
    if refused > 0 {
        bail!("{refused} of {} plugins are refused", listing.plugins.len());
    }
    Ok(())
}

/// The plugins of a device.
struct Listing {
    /// Whether a running supervisor has loaded them.
    is_running: bool,
    /// The problem with the policy.
    policy_error: Option<String>,
    /// As in `GET /v3/plugins`.
    plugins: Vec<Value>,
}

impl Listing {
    fn read(configuration: &Configuration) -> Result<Listing> {
        match RunningSupervisor::find(&configuration.state_dir)? {
            Some(supervisor) => list_running(&supervisor),
            None => {
                let loaded = offline_plugins::load(configuration)?;
                Ok(Listing {
                    is_running: false,
                    policy_error: loaded.policy_error,
                    plugins: loaded.plugins,
                })
            }
        }
    }

    fn json(&self) -> Value {
        let mut json = json!({ "running": self.is_running, "plugins": self.plugins });
        if let Some(error) = &self.policy_error {
            json["policyError"] = error.as_str().into();
        }
        json
    }

    fn text(&self) -> String {
        let policy = self.policy_error.as_ref();
        let policy = policy.map(|error| format!("{error}\n\n"));
        policy.unwrap_or_default() + &table(&self.plugins, self.is_running)
    }
}

/// Asks the running supervisor.
fn list_running(supervisor: &RunningSupervisor) -> Result<Listing> {
    let mut body = supervisor.get("/v3/plugins")?.ok()?;
    Ok(Listing {
        is_running: true,
        policy_error: body["policyError"].as_str().map(str::to_owned),
        plugins: serde_json::from_value(body["plugins"].take()).unwrap_or_default(),
    })
}

/// The titles of the columns.
const TITLES: [&str; 10] = [
    "NAME", "VERSION", "STATE", "CALLS", "FAILURES", "GRANTS", "PROVIDES", "ROUTES", "LIMITS",
    "FILE",
];

/// Formats columns as wide as they need to be.
fn table(plugins: &[Value], is_running: bool) -> String {
    if plugins.is_empty() {
        return "no plugins\n".to_owned();
    }
    let rows: Vec<_> = plugins
        .iter()
        .map(|plugin| row(plugin, is_running))
        .collect();
    let widths: [usize; TITLES.len()] = std::array::from_fn(|column| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([TITLES[column].len()]).max().unwrap_or(0)
    });
    let mut text = line(&TITLES.map(str::to_owned), &widths);
    for (row, plugin) in rows.iter().zip(plugins) {
        text.push_str(&line(row, &widths));
        for (key, lead) in [("refused", ""), ("lastError", "last error: ")] {
            let reason = plugin[key].as_str().unwrap_or_default();
            for reason in reason.lines() {
                text.push_str(&format!("  {lead}{reason}\n"));
            }
        }
    }
    text
}

fn row(plugin: &Value, is_running: bool) -> [String; TITLES.len()] {
    let word = |key: &str| match &plugin[key] {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let items = |key: &str| plugin[key].as_array().map_or(&[][..], Vec::as_slice);
    let list = |key: &str| match items(key) {
        [] => "-".to_owned(),
        items => {
            let words = items.iter().map(|item| item.as_str().unwrap_or_default());
            words.collect::<Vec<_>>().join(", ")
        }
    };
    let state = match plugin["state"].as_str() {
        // It is loaded here, but will not be called.
        Some("running") if !is_running => "loads".to_owned(),
        _ => word("state"),
    };
    let route = |route: &Value| {
        let part = |key: &str| route[key].as_str().unwrap_or_default().to_owned();
        format!("{} {}", part("method"), part("path"))
    };
    let file = plugin["file"].as_str().map(Path::new);
    let file = file.and_then(Path::file_name).unwrap_or_default();
    [
        word("name"),
        word("version"),
        match plugin["unpinned"].as_bool() {
            Some(true) => format!("{state}, unpinned"),
            _ => state,
        },
        word("calls"),
        word("failures"),
        list("grants"),
        list("provides"),
        match items("routes") {
            [] => "-".to_owned(),
            [one] => route(one),
            [first, others @ ..] => format!("{} and {} more", route(first), others.len()),
        },
        limits(&plugin["limits"]),
        file.to_string_lossy().into_owned(),
    ]
}

/// Returns the limits that are not those of most plugins.
fn limits(limits: &Value) -> String {
    let others = LIMITS.iter().filter_map(|range| {
        let value = limits[range.key].as_u64()?;
        (value != u64::from(range.default)).then(|| format!("{} {value}", range.key))
    });
    match others.collect::<Vec<_>>().as_slice() {
        [] => "-".to_owned(),
        others => others.join(", "),
    }
}

fn line(cells: &[String; TITLES.len()], widths: &[usize; TITLES.len()]) -> String {
    let padded: Vec<String> = cells
        .iter()
        .zip(widths)
        .map(|(cell, width)| format!("{cell:width$}"))
        .collect();
    format!("{}\n", padded.join("  ").trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_are_listed_in_columns_with_why_one_was_refused_or_failed() {
        let plugins = [
            json!({
                "name": "device-info", "version": "0.1.0", "state": "running", "calls": 12,
                "failures": 1, "grants": ["device"], "provides": ["identify"],
                "routes": [
                    {"method": "GET", "path": "/v2/device/name"},
                    {"method": "GET", "path": "/v2/local/device-info"},
                ],
                "limits": {
                    "memory_mib": 32, "cpu_ms": 1000, "wall_ms": 500, "body_kib": 1024, "concurrency": 8,
                },
                "lastError": "it trapped", "file": "/plugins/device_info.wasm",
            }),
            json!({
                "name": "x", "state": "refused", "calls": 0, "failures": 0,
                "refused": "no manifest\nin it", "file": "/plugins/x.wasm",
            }),
        ];
        let expected = "\
NAME         VERSION  STATE    CALLS  FAILURES  GRANTS  PROVIDES  ROUTES                          LIMITS                      FILE
device-info  0.1.0    running  12     1         device  identify  GET /v2/device/name and 1 more  memory_mib 32, wall_ms 500  device_info.wasm
  last error: it trapped
x            -        refused  0      0         -       -         -                               -                           x.wasm
  no manifest
  in it
";
        assert_eq!(table(&plugins, true), expected);
        assert!(table(&plugins, false).contains("0.1.0    loads "));
        assert_eq!(table(&[], true), "no plugins\n");
        let listing = Listing {
            is_running: false,
            policy_error: Some("the policy `p` is invalid: line 3".to_owned()),
            plugins: Vec::new(),
        };
        assert_eq!(
            listing.text(),
            "the policy `p` is invalid: line 3\n\nno plugins\n"
        );
    }
}
