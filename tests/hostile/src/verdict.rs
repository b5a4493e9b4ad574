//! What has to hold whatever was tried, and what the attack's own file says.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use ::tests::{Supervisor, children_of, until_within};

use crate::attack::Attack;
use crate::memory;
use crate::probes::{self, LongestAnswers, Probes};

/// How many rounds of requests are sent to the quiet device, and once an attack is over.
const QUIET_ROUNDS: u64 = 20;
const ROUNDS_AFTER: u64 = 2;
/// How much more memory may be in use after an attack, in KiB: what the heap keeps for the next one.
const MEMORY_LEFT: u64 = 24 << 10;
/// The time limit for compiling the largest file on a busy machine. The compiler's own limit is processor time.
const COMPILED_WITHIN: Duration = Duration::from_secs(600);
/// The state that no attack may change.
const STATE: [&str; 2] = ["/v2/local/target-state", "/v2/applications/state"];

/// A device under attack, and its state before.
pub struct Victim {
    pub device: Supervisor,
    pub probes: Probes,
    /// A device that nobody attacks.
    other: Arc<Supervisor>,
    pid: i32,
    state: Vec<Value>,
    /// The longest time for an answer before the first attack.
    quiet: Duration,
    /// The longest times for an answer during the latest attack that came to a verdict.
    longest: Option<LongestAnswers>,
    /// The memory before the first attack, in KiB.
    memory: u64,
    /// The length of the log before this attack, in bytes.
    log_before: usize,
}

/// The result of an attack, apart from its effect on others.
pub struct Outcome<'a> {
    /// All answers to its callers.
    pub answers: &'a str,
    /// Whether the culprit was named to its callers or in the list of plugins.
    pub names: bool,
}

impl Victim {
    /// Measures a device before the first attack; `other` is one that nobody attacks.
    ///
    /// # Errors
    /// If the device is not healthy.
    pub async fn new(device: Supervisor, other: Arc<Supervisor>) -> Result<Self> {
        let probes = Probes::start(&device, &other);
        probes.rounds(QUIET_ROUNDS).await;
        let quiet = probes.longest()?.attacked;
        let mut victim = Victim {
            pid: device.pid(),
            other,
            state: Vec::new(),
            quiet,
            longest: None,
            memory: memory::held_by(device.pid()),
            log_before: 0,
            probes,
            device,
        };
        victim.state = victim.state_now().await;
        victim.log_before = victim.device.log().len();
        Ok(victim)
    }

    /// Judges an attack after it is over; the next one begins here.
    ///
    /// # Errors
    /// Which expectation failed.
    pub async fn judge(&mut self, attack: &Attack, outcome: Outcome<'_>) -> Result<()> {
        self.probes.rounds(ROUNDS_AFTER).await;
        let longest = self.probes.longest().context("others were harmed")?;
        self.longest = Some(longest);
        let allowed = probes::allowed(self.quiet, longest.other);
        ensure!(
            longest.attacked <= allowed,
            "others waited {:?} for an answer, more than {allowed:?}; a device that nobody attacked took at most {:?}",
            longest.attacked,
            longest.other
        );
        ensure!(self.lives(), "the supervisor has ended");
        let log = self.log_of(attack).await?;
        for absent in attack.all("absent") {
            ensure!(!log.contains(absent), "the log has `{absent}`:\n{log}");
            ensure!(
                !outcome.answers.contains(absent),
                "an answer has `{absent}`: {}",
                outcome.answers
            );
        }
        if let Some(forged) = log.lines().find(|line| !is_a_line_of_the_log(line)) {
            bail!("the log has a line that is none of the supervisor's: `{forged}`");
        }
        ensure!(
            outcome.names || attack.first("held").is_some() || attack.first("log").is_some(),
            "nobody was named: {}",
            outcome.answers
        );
        let state = self.state_now().await;
        ensure!(
            state == self.state,
            "the device has changed: {state:?}, before {:?}",
            self.state
        );
        self.until_memory_returns().await
    }

    /// Returns the line about the attack that is over; a failed one may have ended before others were looked at.
    pub fn line(&mut self, attack: &Attack, took: Duration) -> String {
        let (name, sentence) = (&attack.name, &attack.sentence);
        match self.longest.take() {
            Some(longest) => {
                let waited = longest.attacked;
                format!("{name}, {took:?}, others waited at most {waited:?}: {sentence}")
            }
            None => format!("{name}, {took:?}: {sentence}"),
        }
    }

    /// Whether the original process is running: a replacement would not be our child.
    fn lives(&self) -> bool {
        let ours = i32::try_from(std::process::id()).map(children_of);
        ours.is_ok_and(|ours| ours.contains(&self.pid))
    }

    /// Returns the log of this attack, once it contains everything that the attack's file requires.
    async fn log_of(&mut self, attack: &Attack) -> Result<String> {
        let before = self.log_before;
        let log = |device: &Supervisor| device.log().get(before..).unwrap_or_default().to_owned();
        for required in attack.all("log") {
            let shown = within_deadline(|| match log(&self.device) {
                log if log.contains(required) => None,
                log => Some(log),
            });
            if let Some(log) = shown.await {
                bail!("the log does not have `{required}`:\n{log}");
            }
        }
        let log = log(&self.device);
        self.log_before += log.len();
        Ok(log)
    }

    async fn state_now(&self) -> Vec<Value> {
        let mut state = Vec::new();
        for path in STATE {
            state.push(self.device.json(path).await);
        }
        state
    }

    /// Waits for released memory: the supervisor gives back heap memory once no plugin is called, not even by a probe.
    async fn until_memory_returns(&mut self) -> Result<()> {
        let more = |victim: &Victim| {
            let left = memory::held_by(victim.pid).saturating_sub(victim.memory);
            (left > MEMORY_LEFT).then_some(left)
        };
        if more(self).is_none() {
            return Ok(());
        }
        self.probes.pause();
        let left = within_deadline(|| more(self)).await;
        self.probes = Probes::start(&self.device, &self.other);
        match left {
            Some(left) => {
                // Later attacks are judged by their own use.
                self.memory += left;
                bail!("{left} KiB more are held than before")
            }
            None => Ok(()),
        }
    }
}

/// Calls `look` until it has no complaint; returns the last complaint at the deadline.
async fn within_deadline<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    // Longer than anything takes on a busy machine; what is missing then never comes.
    const DEADLINE: Duration = Duration::from_secs(60);
    let deadline = tokio::time::Instant::now() + DEADLINE;
    loop {
        let seen = look()?;
        if tokio::time::Instant::now() > deadline {
            return Some(seen);
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
}

/// Whether a line begins with the time, as all lines of the supervisor do (`2026-01-02T03:04:05`), and has no control
/// characters for terminals.
fn is_a_line_of_the_log(line: &str) -> bool {
    let pattern = b"0000-00-00T00:00:00";
    if line.chars().any(|char| char.is_control() && char != '\t') {
        return false;
    }
    let line = line.as_bytes();
    line.len() > pattern.len()
        && pattern
            .iter()
            .zip(line)
            .all(|(expected, found)| match expected {
                b'0' => found.is_ascii_digit(),
                other => other == found,
            })
}

/// Prints the result of all attacks: the harness continues after one that succeeded.
///
/// # Panics
/// With all that succeeded.
pub fn report(failures: &[(String, anyhow::Error)]) {
    let failures: Vec<_> = failures
        .iter()
        .map(|(name, error)| format!("{name}: {error:#}"))
        .collect();
    assert!(
        failures.is_empty(),
        "{} attacks:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

/// Waits until the list of plugins shows a file in one of these states, and returns the plugin's entry.
pub async fn until_listed(
    device: &Supervisor,
    file: &str,
    is_settled: impl Fn(Option<&Value>) -> bool,
) -> Value {
    until_within(
        COMPILED_WITHIN,
        &format!("the list of plugins to say what became of `{file}`"),
        || async {
            let list = device.json("/v3/plugins").await;
            let plugins = list["plugins"].as_array().cloned().unwrap_or_default();
            let found = plugins.iter().find(|plugin| {
                plugin["file"]
                    .as_str()
                    .is_some_and(|path| path.ends_with(file))
            });
            if is_settled(found) {
                Ok(found.cloned().unwrap_or(Value::Null))
            } else {
                Err(list)
            }
        },
    )
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_log_begins_with_the_time() {
        assert!(is_a_line_of_the_log(
            "2026-11-23T12:00:53.1Z  INFO access: x"
        ));
        for line in [
            "",
            "  INFO x",
            "FORGED",
            "2026-11-23",
            "\u{1b}[2J2026-11-23T12:00:53Z",
            "2026-11-23T12:00:53Z  INFO x\u{1b}[2J",
        ] {
            assert!(!is_a_line_of_the_log(line), "{line}");
        }
    }
}
