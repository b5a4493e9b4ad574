//! What others see of the device meanwhile: `/ping` and another plugin, asked again and again.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use tests::Supervisor;

/// The requests: one to the core, and one to a plugin that ships with the device.
const ASKED: [&str; 2] = ["/ping", "/v2/device/name"];
/// The time between two rounds.
const BETWEEN: Duration = Duration::from_millis(15);
/// How long an answer takes is measured on the device before the attack; under attack at least this much is allowed,
/// since the machine that runs the tests is busy with other things.
const LEAST: Duration = Duration::from_secs(3);
/// The factor beyond that: this many times the longest answer of the quiet device.
const TIMES: u32 = 10;
/// An answer that takes longer than this counts as missing.
const LOST: Duration = Duration::from_secs(20);

/// Sends requests for as long as it lives.
pub struct Probes {
    results: Arc<Mutex<ProbeResults>>,
    rounds: watch::Receiver<u64>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct ProbeResults {
    longest: Duration,
    wrong: Option<String>,
}

impl Probes {
    /// Starts sending requests.
    #[must_use]
    pub fn start(device: &Supervisor) -> Self {
        let results = Arc::<Mutex<ProbeResults>>::default();
        let (round, rounds) = watch::channel(0);
        let (client, key, base) = (
            device.client().clone(),
            device.key().to_owned(),
            device.base().to_owned(),
        );
        let of_task = Arc::clone(&results);
        let task = tokio::spawn(async move {
            loop {
                for path in ASKED {
                    let began = Instant::now();
                    let request = client.get(format!("{base}{path}")).bearer_auth(&key);
                    let answer = request.timeout(LOST).send().await;
                    let wrong = match answer {
                        Ok(answer) if answer.status() == 200 => None,
                        Ok(answer) => Some(format!("{path} answered {}", answer.status())),
                        Err(error) => Some(format!("{path} did not answer: {error:?}")),
                    };
                    if let Ok(mut results) = of_task.lock() {
                        results.longest = results.longest.max(began.elapsed());
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

    /// Returns the longest time for an answer since the last call.
    ///
    /// # Errors
    /// If an answer was missing.
    pub fn longest(&self) -> Result<Duration> {
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

/// Returns the allowed time if the quiet device took at most `quiet`.
#[must_use]
pub fn allowed(quiet: Duration) -> Duration {
    LEAST.max(quiet * TIMES)
}
