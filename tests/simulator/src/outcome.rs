//! The result of a simulation.

use std::fmt::Write as _;
use std::time::Duration;

use comfy_table::Table;
use serde::{Deserialize, Serialize};

/// The result of a simulation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    /// The number of devices.
    pub devices: u32,
    /// The phases, in order.
    pub phases: Vec<Phase>,
    /// Resident memory of each device in the simulator, in bytes.
    pub bytes_a_device: u64,
    /// Resident memory of each tunnel in the cloud, in bytes, if the cloud is our own.
    pub bytes_a_tunnel: Option<u64>,
    /// What failed, and how often.
    pub troubles: Vec<(u64, String)>,
}

/// One part of the story, from its beginning until all devices have completed it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Phase {
    /// What the phase is about.
    pub name: String,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// The time until each device had its target; missing if the phase is not about one.
    pub target_delay: Option<Spread>,
    /// The time until the cloud knew that each device was done; missing if that was not measured.
    pub report_delay: Option<Spread>,
    /// Requests for the target.
    pub polls: u64,
    /// Reports that the cloud accepted.
    pub reports: u64,
    /// The number of failures.
    pub errors: u64,
    /// CPU seconds that the cloud used, if it is our own.
    pub cloud_cpu: Option<f64>,
    /// Resident memory of the cloud at the end, in bytes, if it is our own.
    pub cloud_memory: Option<u64>,
}

/// The distribution of times, in seconds.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Spread {
    /// Half of the times are shorter.
    pub p50: f64,
    /// All but one in a hundred are shorter.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

impl Spread {
    /// The distribution of these times.
    #[must_use]
    pub fn from_times(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |share: usize| {
            let at = times.len().saturating_sub(1) * share / 100;
            times.get(at).copied().unwrap_or_default().as_secs_f64()
        };
        Spread {
            p50: at(50),
            p99: at(99),
            max: at(100),
        }
    }
}

impl Outcome {
    /// Returns a table for people.
    #[must_use]
    pub fn table(&self) -> String {
        let mut table = Table::new();
        table.set_header([
            "",
            "all after",
            "received: p50",
            "p99",
            "max",
            "reported: p50",
            "p99",
            "max",
            "polls",
            "reports",
            "errors",
            "cloud CPU",
            "memory",
        ]);
        for phase in &self.phases {
            let cpu = phase.cloud_cpu.map(|cpu| format!("{cpu:.2} s"));
            let memory = phase.cloud_memory.map(mebibytes);
            let [target_cells, report_cells] = [phase.target_delay, phase.report_delay].map(spread);
            let mut row = vec![phase.name.clone(), seconds(phase.seconds)];
            row.extend(target_cells.into_iter().chain(report_cells));
            row.extend([
                phase.polls.to_string(),
                phase.reports.to_string(),
                phase.errors.to_string(),
                cpu.unwrap_or_default(),
                memory.unwrap_or_default(),
            ]);
            table.add_row(row);
        }
        let mut text = format!("{table}\n");
        let own = kibibytes(self.bytes_a_device);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "each device uses {own} of memory in the simulator");
        if let Some(bytes) = self.bytes_a_tunnel {
            let bytes = kibibytes(bytes);
            let _ = writeln!(text, "each tunnel uses {bytes} of memory in the cloud");
        }
        for (times, message) in &self.troubles {
            let _ = writeln!(text, "{times} times: {message}");
        }
        text
    }
}

fn spread(of: Option<Spread>) -> [String; 3] {
    of.map(|of| [of.p50, of.p99, of.max].map(seconds))
        .unwrap_or_default()
}

fn seconds(seconds: f64) -> String {
    format!("{seconds:.3} s")
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

fn kibibytes(bytes: u64) -> String {
    format!("{} KiB", bytes >> 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_p99_covers_all_but_one_of_a_hundred_times() {
        let times = (1..=101).rev().map(Duration::from_secs).collect();
        let spread = Spread::from_times(times);
        assert_eq!((spread.p50, spread.p99, spread.max), (51.0, 100.0, 101.0));
        assert!(Spread::from_times(Vec::new()).max.abs() < f64::EPSILON);
    }
}
