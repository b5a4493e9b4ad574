//! A hundred plugins at once: the time that it takes to have them, and the memory.
//!
//! They are copies of `device-info` under other names and routes, each a component of its own to the
//! runtime: its manifest is another, so its digest is.

use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use plugins::DEFAULT_SLOTS;
use tests::distribution;

use crate::figures::{Section, mebibytes, millis};
use crate::plugin_calls::{PluginHost, call_once};
use crate::process::memory;

const COUNT: usize = 100;
const SECTION: &str = "platform:manifest";

pub(crate) async fn measure() -> Result<Section> {
    let folder = tempfile::tempdir()?;
    let plugins = folder.path().join("plugins");
    fs::create_dir(&plugins)?;
    let policy = folder.path().join("policy.toml");
    write_plugins(&plugins, &policy)?;

    // Once, to compile them.
    let compiling = Instant::now();
    drop(PluginHost::start_with(plugins.clone(), policy.clone(), DEFAULT_SLOTS).await?);
    let compiled = compiling.elapsed();

    let before = memory(std::process::id())?;
    let begin = Instant::now();
    let host = PluginHost::start_with(plugins, policy, DEFAULT_SLOTS).await?;
    let loaded = begin.elapsed();
    let after_load = memory(std::process::id())?;
    for number in 0..COUNT {
        call_once(&host, &format!("/v3/copy{number}")).await?;
    }
    let after_calls = memory(std::process::id())?;

    let mut section = Section::new("A hundred plugins");
    section.add(
        "start of the runtime with all of them, from the cache",
        millis(loaded),
        format!("the first time, compiling them: {}", millis(compiled)),
        "",
    );
    section.add(
        "resident memory that they add",
        format!(
            "{} loaded, {} after one call of each",
            mebibytes(after_load.resident.saturating_sub(before.resident)),
            mebibytes(after_calls.resident.saturating_sub(before.resident))
        ),
        format!(
            "anonymous alone: {} and {}",
            mebibytes(after_load.anonymous.saturating_sub(before.anonymous)),
            mebibytes(after_calls.anonymous.saturating_sub(before.anonymous))
        ),
        "",
    );
    section.note(
        "Copies of `device-info` with a manifest each. What is not anonymous is clean pages of the \
         compiled files, which the kernel may drop.",
    );
    Ok(section)
}

fn write_plugins(folder: &Path, policy: &Path) -> Result<()> {
    let stock = fs::read(distribution().join("plugins/device_info.wasm"))?;
    let mut grants = String::new();
    for number in 0..COUNT {
        let name = format!("copy{number}");
        let component = rename(&stock, "device-info", &name)?;
        fs::write(folder.join(format!("{name}.wasm")), component)?;
        grants.push_str(&format!("[plugins.{name}]\ngrants = [\"device\"]\n"));
    }
    fs::write(policy, grants)?;
    Ok(())
}

/// Puts another name and another route of the same lengths into the manifest, wherever it is nested:
/// no size in the file changes.
fn rename(component: &[u8], from: &str, to: &str) -> Result<Vec<u8>> {
    let mut copy = component.to_vec();
    let at = find(&copy, SECTION.as_bytes()).context("the plugin has no manifest")?;
    replace(&mut copy[at..], from, to)?;
    replace(&mut copy[at..], "/v2/device/name", &format!("/v3/{to}"))?;
    replace(
        &mut copy[at..],
        "/v2/local/device-info",
        &format!("/v3/also-{to}"),
    )?;
    Ok(copy)
}

/// Replaces a quoted string, and fills up behind the quote with spaces, which TOML ignores.
fn replace(bytes: &mut [u8], from: &str, to: &str) -> Result<()> {
    let old = format!("\"{from}\"");
    let Some(at) = find(bytes, old.as_bytes()) else {
        bail!("the manifest has no {old}");
    };
    if to.len() > from.len() {
        bail!("`{to}` is longer than `{from}`");
    }
    let new = format!("{:width$}", format!("\"{to}\""), width = old.len());
    bytes[at..at + old.len()].copy_from_slice(new.as_bytes());
    Ok(())
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack
        .windows(needle.len())
        .position(|window| window == needle)
}
