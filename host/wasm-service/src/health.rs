//! The health check of a service: what is checked and how often, and what consecutive outcomes mean. They have the same
//! meaning as for a Docker container (docs/spec/device.md#health-of-services).

use std::time::Duration;

use model::ContainerHealth;
use serde::{Deserialize, Serialize};

/// A check of a service, made by its own process from outside the component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthCheck {
    /// What is checked.
    pub probe: HealthProbe,
    /// The time between the end of one check and the next, and before the first.
    pub interval: Duration,
    /// How long one check may take; after that it has failed.
    pub timeout: Duration,
    /// For how long after the start failed checks do not count.
    pub start_period: Duration,
    /// How many checks in a row fail before the service is unhealthy.
    pub retries: u32,
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HealthProbe {
    /// Connects to a port on which the service listens.
    Tcp {
        /// The port, as the service knows it.
        port: u16,
    },
    /// Sends a GET request, and expects a status from 200 to 399.
    Http {
        /// The port, as the service knows it.
        port: u16,
        /// The path and the query; visible ASCII only.
        path: String,
    },
}

/// The outcomes of the checks of one run of a service.
#[derive(Debug)]
pub struct HealthStreak {
    health: ContainerHealth,
    /// Consecutive failures that count.
    failures: u32,
}

impl Default for HealthStreak {
    /// The outcomes of a run that has just begun.
    fn default() -> Self {
        HealthStreak {
            health: ContainerHealth::Starting,
            failures: 0,
        }
    }
}

impl HealthStreak {
    /// Returns the health after one more check has passed or failed, `age` after the run began.
    pub fn add(&mut self, check: &HealthCheck, passed: bool, age: Duration) -> ContainerHealth {
        let is_starting = self.health == ContainerHealth::Starting && age < check.start_period;
        if passed {
            self.health = ContainerHealth::Healthy;
            self.failures = 0;
        } else if !is_starting {
            self.failures = self.failures.saturating_add(1);
            if self.failures >= check.retries.max(1) {
                self.health = ContainerHealth::Unhealthy;
            }
        }
        self.health
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_in_a_row_are_unhealthy_and_one_success_is_healthy() {
        use ContainerHealth::{Healthy, Starting, Unhealthy};
        let check = HealthCheck {
            probe: HealthProbe::Tcp { port: 80 },
            interval: Duration::from_secs(1),
            timeout: Duration::from_secs(1),
            start_period: Duration::from_secs(10),
            retries: 2,
        };
        let mut streak = HealthStreak::default();
        for (seconds, passed, expected) in [
            // The start period: failures do not count.
            (1, false, Starting),
            (2, false, Starting),
            (3, false, Starting),
            (10, false, Starting),
            (11, false, Unhealthy),
            (12, true, Healthy),
            (13, false, Healthy),
            (14, true, Healthy),
            (15, false, Healthy),
            (16, false, Unhealthy),
            (17, false, Unhealthy),
            (18, true, Healthy),
        ] {
            let health = streak.add(&check, passed, Duration::from_secs(seconds));
            assert_eq!(health, expected, "after {seconds} s");
        }
        // A success within the start period ends it.
        let mut streak = HealthStreak::default();
        let mut add = |passed, seconds| streak.add(&check, passed, Duration::from_secs(seconds));
        assert_eq!(add(true, 1), Healthy);
        assert_eq!(add(false, 2), Healthy);
        assert_eq!(add(false, 3), Unhealthy);
    }
}
