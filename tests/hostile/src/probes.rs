//! What others see of the device meanwhile: `/ping` and another plugin, asked again and again.
//!
//! A device that nobody attacks is asked the same at the same moments: what slows both of them is the machine, which is
//! busy with other tests.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use tests::Supervisor;

/// The requests: one to the core, and one to a plugin that ships with the device.
const PROBED_PATHS: [&str; 2] = ["/ping", "/v2/device/name"];
/// The time between two rounds.
const BETWEEN: Duration = Duration::from_millis(15);
/// Under attack at least this much is allowed.
const LEAST: Duration = Duration::from_secs(3);
/// The factor beyond that: this many times the longest answer of the device before the attack, which is quiet.
const TIMES_QUIET: u32 = 10;
/// The factor beyond that: this many times the longest answer of the other device during the attack.
const TIMES_OTHER: u32 = 2;
/// An answer that takes longer than this counts as missing.
const LOST: Duration = Duration::from_secs(20);

/// Sends requests for as long as it lives.
pub struct Probes {
    results: Arc<Mutex<ProbeResults>>,
    rounds: watch::Receiver<u64>,
    task: JoinHandle<()>,
}

/// The longest times for an answer.
#[derive(Debug, Default, Clone, Copy)]
pub struct LongestAnswers {
    /// Of the device under attack.
    pub attacked: Duration,
    /// Of the device that nobody attacks.
    pub other: Duration,
}

#[derive(Default)]
struct ProbeResults {
    longest: LongestAnswers,
    wrong: Option<String>,
}

/// Where to send requests.
struct Target {
    client: reqwest::Client,
    base: String,
    key: String,
}

impl Target {
    fn new(device: &Supervisor) -> Self {
        Target {
            client: device.client().clone(),
            base: device.base().to_owned(),
            key: device.key().to_owned(),
        }
    }

    /// Returns how long the answer took, and an error if it was missing.
    async fn ask(&self, path: &str) -> (Duration, Option<String>) {
        let began = Instant::now();
        let request = self.client.get(format!("{}{path}", self.base));
        let answer = request.bearer_auth(&self.key).timeout(LOST).send().await;
        let wrong = match answer {
            Ok(answer) if answer.status() == 200 => None,
            Ok(answer) => Some(format!("{path} answered {}", answer.status())),
            Err(error) => Some(format!("{path} did not answer: {error:?}")),
        };
        (began.elapsed(), wrong)
    }
}

impl Probes {
    /// Starts sending requests to the device under attack, and to another one.
    #[must_use]
    pub fn start(attacked: &Supervisor, other: &Supervisor) -> Self {
        let results = Arc::<Mutex<ProbeResults>>::default();
        let (round, rounds) = watch::channel(0);
        let (attacked, other) = (Target::new(attacked), Target::new(other));
        let of_task = Arc::clone(&results);
        let task = tokio::spawn(async move {
            loop {
                for path in PROBED_PATHS {
                    let ((time, wrong), (time_of_other, _)) =
                        tokio::join!(attacked.ask(path), other.ask(path));
                    if let Ok(mut results) = of_task.lock() {
                        let longest = &mut results.longest;
                        longest.attacked = longest.attacked.max(time);
                        longest.other = longest.other.max(time_of_other);
                        if wrong.is_some() {
                            results.wrong = wrong;
                        }
                    }
                }
                round.send_modify(|round| *round += 1);
                tokio::time::sleep(BETWEEN).await;
            }
        });
        Probes {
            results,
            rounds,
            task,
        }
    }

    /// Stops sending requests.
    pub fn pause(&self) {
        self.task.abort();
    }

    /// Waits until this many further rounds are complete.
    pub async fn rounds(&self, more: u64) {
        let mut rounds = self.rounds.clone();
        let until = *rounds.borrow() + more;
        // The channel closes only with this value.
        let _ = rounds.wait_for(|round| *round >= until).await;
    }

    /// Returns the longest times for an answer since the last call.
    ///
    /// # Errors
    /// If an answer of the device under attack was missing.
    pub fn longest(&self) -> Result<LongestAnswers> {
        let Ok(mut results) = self.results.lock() else {
            bail!("the results of the probes are lost");
        };
        let ProbeResults { longest, wrong } = std::mem::take(&mut *results);
        match wrong {
            Some(wrong) => bail!("{wrong}"),
            None => Ok(longest),
        }
    }
}

impl Drop for Probes {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Returns the allowed time if the quiet device took at most `quiet`, and the other one `other` during the attack.
#[must_use]
pub fn allowed(quiet: Duration, other: Duration) -> Duration {
    LEAST.max(quiet * TIMES_QUIET).max(other * TIMES_OTHER)
}
