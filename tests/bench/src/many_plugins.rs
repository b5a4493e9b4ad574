//! A hundred plugins at once: the time to load them, and their memory.
//!
//! They are copies under other names and routes. Each is a different component to the runtime: its manifest differs,
//! and so does its digest.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use tests::{distribution, kept_plugin};

use crate::device::Device;
use crate::figures::{Section, mebibytes, millis};
use crate::process::{Memory, memory};

const COUNT: usize = 100;
const SECTION: &str = "platform:manifest";
/// The maximum size of the kept plugins' manifest, in bytes: the file after it is left unchanged.
const LONGEST_MANIFEST: usize = 2048;
/// The version of the interface whose kept plugins are copied.
const VERSION: &str = "1.4";
/// Longer than any background work of a start.
const SETTLE: Duration = Duration::from_secs(3);
/// The time limit for compiling all of them: Python's interpreter takes most of a minute on a slow machine.
const COMPILED: Duration = Duration::from_secs(3600);

/// A plugin to copy.
struct Original {
    component: Vec<u8>,
    /// Texts of the manifest and their replacements in a copy. They have the same length, so no size in the file
    /// changes; `##` is the number of the copy. The name comes first.
    texts: Vec<(String, String)>,
    grants: &'static str,
    /// The routes of the plugin, and the path of its request.
    routes: Vec<String>,
    request: String,
}

impl Original {
    /// The example in this language.
    fn hello(language: &str) -> Original {
        let name = format!("hello-{language}");
        let (stem, _) = name.split_at(name.len() - 2);
        Original {
            component: kept_plugin(VERSION, &name.replace('-', "_")),
            texts: vec![(name.clone(), format!("{stem}##"))],
            grants: "\"store\"",
            routes: vec![format!("/v3/{name}/*")],
            request: format!("/v3/{name}/Ada"),
        }
    }
}

/// The stock plugin, in Rust.
fn device_info() -> Result<Original> {
    Ok(Original {
        component: fs::read(distribution().join("plugins/device_info.wasm"))?,
        texts: [
            ("device-info", "device-in##"),
            ("/v2/local/", "/v3/local/"),
            ("/v2/device/name", "/v3/device/na##"),
        ]
        .map(|(old, new)| (old.to_owned(), new.to_owned()))
        .into(),
        grants: "\"device\"",
        routes: ["/v2/device/name", "/v2/local/device-info"]
            .map(str::to_owned)
            .into(),
        request: "/v2/device/name".to_owned(),
    })
}

/// Copies of one plugin in Rust.
pub(crate) async fn measure() -> Result<Section> {
    let mut section = measure_copies("A hundred plugins", &[device_info()?]).await?;
    section.note(
        "Copies of `device-info` with a manifest each. What is not anonymous is clean pages of the \
         compiled files, which the kernel may drop.",
    );
    Ok(section)
}

/// Copies of one plugin in each language.
pub(crate) async fn measure_languages() -> Result<Section> {
    let mut originals = vec![device_info()?];
    let languages = ["c", "go", "javascript", "typescript", "python"];
    originals.extend(languages.map(Original::hello));
    let mut section = measure_copies("A hundred plugins in six languages", &originals).await?;
    section.note(format!(
        "Copies, in turn, of `device-info` (Rust) and of `hello` in C, Go, JavaScript, TypeScript and Python, as \
         `tests/compatibility/{VERSION}` keeps them. Each is compiled by itself the first time, also the interpreter in it."
    ));
    Ok(section)
}

async fn measure_copies(title: &'static str, originals: &[Original]) -> Result<Section> {
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
    let without = both_processes(&device)?;
    device.stop().await?;

    let requests = write_plugins(originals, &plugins, &policy)?;
    // Once, to compile them.
    let (_, compiled) = start(&mut device).await?;
    device.stop().await?;
    let (ping, loaded) = start(&mut device).await?;
    tokio::time::sleep(SETTLE).await;
    let after_load = both_processes(&device)?;
    let client = tests::client();
    for request in requests {
        let request = client.get(format!("http://{}{request}", device.address));
        let answer = request.bearer_auth(device.key()?).send().await?;
        // The answer does not matter: an instance is created and used, though some plugins only know the old names of
        // their routes.
        answer.bytes().await?;
    }
    tokio::time::sleep(SETTLE).await;
    let after_calls = both_processes(&device)?;
    device.stop().await?;

    let mut section = Section::new(title);
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
    let added = |after: u64, before: u64| mebibytes(after.saturating_sub(before));
    section.add(
        "resident memory that they add to the supervisor and the process of plugins",
        format!(
            "{} loaded, {} after one call of each",
            added(after_load.resident, without.resident),
            added(after_calls.resident, without.resident)
        ),
        format!(
            "anonymous alone: {} and {}; without any plugin both have {}",
            added(after_load.anonymous, without.anonymous),
            added(after_calls.anonymous, without.anonymous),
            mebibytes(without.resident)
        ),
        "",
    );
    Ok(section)
}

/// Returns the memory of the supervisor and the plugin process together.
fn both_processes(device: &Device) -> Result<Memory> {
    let supervisor = memory(device.pid()?)?;
    let worker = device.plugin_worker()?.map(memory).transpose()?;
    let of_worker = |part: fn(&Memory) -> u64| worker.as_ref().map_or(0, part);
    Ok(Memory {
        resident: supervisor.resident + of_worker(|worker| worker.resident),
        anonymous: supervisor.anonymous + of_worker(|worker| worker.anonymous),
        peak: supervisor.peak + of_worker(|worker| worker.peak),
    })
}

/// Starts the device; returns how long the first 200 on `/ping` took, and loading all plugins.
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
        // Plugins are loaded one by one.
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
        if begin.elapsed() > COMPILED {
            bail!("{running} plugins run:\n{}", device.log());
        }
        if begin.elapsed() > SETTLE {
            // They are being compiled, which must not be slowed down.
            tokio::time::sleep(SETTLE / 10).await;
        }
    }
}

/// Writes the copies and the policy that admits them; returns a request for each.
fn write_plugins(originals: &[Original], folder: &Path, policy: &Path) -> Result<Vec<String>> {
    let mut grants = String::new();
    let mut requests = Vec::new();
    for (number, original) in (0..COUNT).zip(originals.iter().cycle()) {
        let texts = original.texts.iter();
        let texts =
            texts.map(|(old, new)| (old.as_str(), new.replace("##", &format!("{number:02}"))));
        let texts: Vec<(&str, String)> = texts.collect();
        let of_copy = |text: &str| {
            let texts = texts.iter();
            texts.fold(text.to_owned(), |text, (old, new)| text.replace(old, new))
        };
        let mut component = original.component.clone();
        let at = find(&component, SECTION).context("the plugin has no manifest")?;
        let end = component.len().min(at + LONGEST_MANIFEST);
        for (old, new) in &texts {
            replace(&mut component[at..end], old, new)?;
        }
        let name = &texts[0].1;
        let digest = compiled_code::digest(&component);
        fs::write(folder.join(format!("{name}.wasm")), component)?;
        let routes: Vec<String> = original.routes.iter().map(|route| of_copy(route)).collect();
        grants.push_str(&format!(
            "[plugins.{name}]\nsha256 = [\"{digest}\"]\ngrants = [{}]\nroutes = {routes:?}\n",
            original.grants
        ));
        requests.push(of_copy(&original.request));
    }
    fs::write(policy, grants)?;
    Ok(requests)
}

/// Replaces all occurrences of a text by another one of the same length.
fn replace(bytes: &mut [u8], old: &str, new: &str) -> Result<()> {
    if old.len() != new.len() {
        bail!("`{old}` and `{new}` differ in length");
    }
    let mut from = 0;
    while let Some(at) = find(&bytes[from..], old) {
        let at = from + at;
        from = at + old.len();
        bytes[at..from].copy_from_slice(new.as_bytes());
    }
    if from == 0 {
        bail!("the plugin has `{old}` nowhere");
    }
    Ok(())
}

fn find(haystack: &[u8], needle: &str) -> Option<usize> {
    haystack
        .windows(needle.len())
        .position(|window| window == needle.as_bytes())
}
