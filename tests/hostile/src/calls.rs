//! A component's attack: it is installed, called, and removed.
//!
//! In its comment:
//! - `refused: TEXT`: it is not loaded, and the list of plugins contains the reason; without this line it has to be
//!   loaded;
//! - `body: N`: the request is a POST with a body of this many bytes; otherwise it is a GET;
//! - `reader: leaves` or `reader: stays`: the caller reads the head of the answer and disconnects, or stays for a while
//!   without reading on; otherwise it reads to the end.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use serde_json::Value;

use tests::Supervisor;

use crate::attack::Attack;
use crate::plugin_folder::PluginFolder;
use crate::probes::Probes;
use crate::verdict::{Outcome, Victim, until_listed};

/// Longer than any call may take.
const CALL_WITHIN: Duration = Duration::from_secs(30);
/// How much of an answer is read, in bytes.
const READ_UP_TO: usize = 32 << 20;
/// How long a caller stays without reading, in rounds of probes.
const STAYS_FOR: u64 = 10;

/// Installs and calls a component, and judges the result.
///
/// # Errors
/// Which expectation failed.
pub async fn attack(
    victim: &mut Victim,
    folder: &PluginFolder,
    attack: &Attack,
    content: &[u8],
) -> Result<()> {
    let file = format!("/{}.wasm", attack.name);
    folder.install(attack, content)?;
    let listed = until_listed(&victim.device, &file, |plugin| {
        plugin.is_some_and(|plugin| plugin["state"] != "loading")
    })
    .await;
    let tried = match attack.first("refused") {
        Some(reason) => is_refused(&listed, reason),
        None => call_all(victim, attack, &listed).await,
    };
    // Also after a failure: the next component needs a device without it.
    folder.remove(attack)?;
    until_listed(&victim.device, &file, |plugin| plugin.is_none()).await;
    let (answers, names) = tried?;
    let outcome = Outcome {
        answers: &answers,
        names,
    };
    victim.judge(attack, outcome).await
}

/// Checks the reason of a refusal, which the list shows for the file.
fn is_refused(listed: &Value, reason: &str) -> Result<(String, bool)> {
    let refused = listed["refused"].as_str().unwrap_or_default();
    ensure!(
        listed["state"] == "refused" && refused.contains(reason),
        "it was not refused with `{reason}`: {listed}"
    );
    Ok((listed.to_string(), true))
}

async fn call_all(victim: &Victim, attack: &Attack, listed: &Value) -> Result<(String, bool)> {
    ensure!(listed["state"] == "running", "it was not loaded: {listed}");
    let at_once = attack.number("at-once", 1)?;
    let calls = (0..at_once).map(|_| call(&victim.device, &victim.probes, attack));
    let answers = futures::future::try_join_all(calls).await?;
    let allowed: Vec<_> = attack.all("answer").collect();
    for answer in &answers {
        let is_allowed = allowed.iter().any(|allowed| {
            let (status, text) = allowed.split_once(' ').unwrap_or((allowed, ""));
            answer
                .strip_prefix(status)
                .is_some_and(|rest| rest.contains(text))
        });
        let shown: String = answer.chars().take(1000).collect();
        ensure!(is_allowed, "it was answered `{shown}`, and not {allowed:?}");
    }
    let name = format!("`{}`", attack.name);
    let names = answers.iter().any(|answer| answer.contains(&name));
    Ok((answers.join("\n"), names))
}

/// Returns status, headers and body of one call as one text.
async fn call(device: &Supervisor, probes: &Probes, attack: &Attack) -> Result<String> {
    let path = format!("/v3/{}", attack.name);
    let request = match attack.number("body", 0)? {
        0 => device.request("GET", &path),
        length => device.request("POST", &path).body(vec![b'x'; length]),
    };
    let mut answer = request.timeout(CALL_WITHIN).send().await?;
    let mut text = format!("{} {:?}\n", answer.status().as_u16(), answer.headers());
    match attack.first("reader") {
        None => {}
        Some("leaves") => return Ok(text),
        Some("stays") => {
            probes.rounds(STAYS_FOR).await;
            return Ok(text);
        }
        Some(other) => bail!("`reader: {other}`"),
    }
    let mut length = 0;
    loop {
        match answer.chunk().await {
            Ok(Some(piece)) => {
                length += piece.len();
                ensure!(length < READ_UP_TO, "its answer has no end");
                text.push_str(&String::from_utf8_lossy(&piece));
            }
            Ok(None) => return Ok(text),
            // A reader has to notice that something is missing.
            Err(error) => return Ok(format!("{text}\ncut off: {error}")),
        }
    }
}
