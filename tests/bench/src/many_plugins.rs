//! A hundred plugins at once: the time that it takes to have them, and the memory.
//!
//! They are copies of `device-info` under other names and routes, each a component of its own to the
//! runtime: its manifest is another, so its digest is.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tests::distribution;

use crate::device::Device;
use crate::figures::{Section, mebibytes, millis};
use crate::process::memory;

const COUNT: usize = 100;
const SECTION: &str = "platform:manifest";
/// Longer than anything that a start leaves to be done in the background.
const SETTLE: Duration = Duration::from_secs(3);

pub(crate) async fn measure() -> Result<Section> {
    let folder = tempfile::tempdir()?;
    let plugins = folder.path().join("plugins");
    fs::create_dir(&plugins)?;
    let policy = folder.path().join("policy.toml");
    let mut device = Device::new(&["--engine", "wasm"])?;
    device.argument(format!("--plugin-dir={}", plugins.display()));
    device.argument(format!("--policy={}", policy.display()));

    fs::write(&policy, "")?;
    device.start().await?;
    tokio::time::sleep(SETTLE).await;
    let without = memory(device.pid()?)?;
    device.stop().await?;

    write_plugins(&plugins, &policy)?;
    // Once, to compile them.
    let (_, compiled) = start(&mut device).await?;
    device.stop().await?;
    let (ping, loaded) = start(&mut device).await?;
    tokio::time::sleep(SETTLE).await;
    let after_load = memory(device.pid()?)?;
    let client = tests::client();
    for number in 0..COUNT {
        // Whatever it answers: an instance is made and used.
        let path = format!("/v3/copy{number}?apikey={}", device.key()?);
        let answer = client.get(format!("http://{}{path}", device.address));
        answer.send().await?.bytes().await?;
    }
    tokio::time::sleep(SETTLE).await;
    let after_calls = memory(device.pid()?)?;
    device.stop().await?;

    let mut section = Section::new("A hundred plugins");
    section.add(
        "start to all of them loaded, from the cache",
        format!(
            "{}; the first 200 on /ping after {}",
            millis(loaded),
            millis(ping)
        ),
        format!("the first time, compiling them: {}", millis(compiled)),
        "",
    );
    section.add(
        "resident memory of the supervisor that they add",
        format!(
            "{} loaded, {} after one call of each",
            mebibytes(after_load.resident.saturating_sub(without.resident)),
            mebibytes(after_calls.resident.saturating_sub(without.resident))
        ),
        format!(
            "anonymous alone: {} and {}; without any plugin it has {}",
            mebibytes(after_load.anonymous.saturating_sub(without.anonymous)),
            mebibytes(after_calls.anonymous.saturating_sub(without.anonymous)),
            mebibytes(without.resident)
        ),
        "",
    );
    section.note(
        "Copies of `device-info` with a manifest each. What is not anonymous is clean pages of the \
         compiled files, which the kernel may drop.",
    );
    Ok(section)
}

/// Starts it; answers how long the first 200 on `/ping` took, and all plugins.
async fn start(device: &mut Device) -> Result<(Duration, Duration)> {
    let begin = Instant::now();
    let ping = device.start().await?;
    let url = format!(
        "http://{}/v3/plugins?apikey={}",
        device.address,
        device.key()?
    );
    let client = tests::client();
    loop {
        // They are loaded one by one.
        let report: Value = client.get(&url).send().await?.json().await?;
        let plugins = report["plugins"].as_array().map_or(&[][..], Vec::as_slice);
        let is = |state: &str| {
            plugins
                .iter()
                .filter(|plugin| plugin["state"] == state)
                .count()
        };
        let (running, loading) = (is("running"), is("loading"));
        if running + loading < plugins.len() {
            bail!("a plugin does not run: {report}\n{}", device.log());
        }
        if running == COUNT {
            return Ok((ping, begin.elapsed()));
        }
    }
}

fn write_plugins(folder: &Path, policy: &Path) -> Result<()> {
    let stock = fs::read(distribution().join("plugins/device_info.wasm"))?;
    let mut grants = String::new();
    for number in 0..COUNT {
        let name = format!("copy{number}");
        let component = rename(&stock, "device-info", &name)?;
        let digest = compiled_code::digest(&component);
        fs::write(folder.join(format!("{name}.wasm")), component)?;
        grants.push_str(&format!(
            "[plugins.{name}]\nsha256 = [\"{digest}\"]\ngrants = [\"device\"]\n\
             routes = [\"/v3/{name}\", \"/v3/also-{name}\"]\n"
        ));
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
