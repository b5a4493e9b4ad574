//! The results of measurements, and the page with them.

use std::fmt::Write as _;
use std::time::Duration;

/// Latencies of many equal operations.
pub(crate) struct Latencies {
    sorted: Vec<Duration>,
}

impl Latencies {
    pub(crate) fn new(mut samples: Vec<Duration>) -> Self {
        samples.sort_unstable();
        Latencies { sorted: samples }
    }

    /// Returns the latency within which `percent` of the operations stayed.
    pub(crate) fn percentile(&self, percent: usize) -> Duration {
        let last = self.sorted.len().saturating_sub(1);
        self.sorted
            .get(last * percent / 100)
            .copied()
            .unwrap_or_default()
    }

    pub(crate) fn p50(&self) -> Duration {
        self.percentile(50)
    }

    pub(crate) fn p99(&self) -> Duration {
        self.percentile(99)
    }

    pub(crate) fn count(&self) -> usize {
        self.sorted.len()
    }
}

/// One line of the page.
pub(crate) struct Figure {
    pub(crate) what: String,
    pub(crate) measured: String,
    /// The comparison measured in the same run; empty if there is none.
    pub(crate) against: String,
    pub(crate) aim: String,
}

/// One section of the page.
pub(crate) struct Section {
    pub(crate) title: &'static str,
    pub(crate) figures: Vec<Figure>,
    /// How the figures were measured, and why some miss their aim.
    pub(crate) notes: Vec<String>,
}

impl Section {
    pub(crate) fn new(title: &'static str) -> Self {
        Section {
            title,
            figures: Vec::new(),
            notes: Vec::new(),
        }
    }

    pub(crate) fn add(
        &mut self,
        what: impl Into<String>,
        measured: impl Into<String>,
        against: impl Into<String>,
        aim: impl Into<String>,
    ) {
        self.figures.push(Figure {
            what: what.into(),
            measured: measured.into(),
            against: against.into(),
            aim: aim.into(),
        });
    }

    pub(crate) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    pub(crate) fn to_markdown(&self) -> String {
        let mut page = format!(
            "### {}\n\n| what | measured | beside it | aim |\n|---|---|---|---|\n",
            self.title
        );
        for Figure {
            what,
            measured,
            against,
            aim,
        } in &self.figures
        {
            // Writing to a String cannot fail.
            let _ = writeln!(page, "| {what} | {measured} | {against} | {aim} |");
        }
        for note in &self.notes {
            let _ = write!(page, "\n{note}\n");
        }
        page
    }
}

/// Microseconds with one decimal, as in the aims.
pub(crate) fn micros(duration: Duration) -> String {
    format!("{:.1} us", duration.as_secs_f64() * 1e6)
}

/// Milliseconds with one decimal.
pub(crate) fn millis(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1e3)
}

/// Mebibytes with one decimal.
pub(crate) fn mebibytes(bytes: u64) -> String {
    #[expect(
        clippy::cast_precision_loss,
        reason = "a figure for people, with one digit"
    )]
    let mebibytes = bytes as f64 / f64::from(1 << 20);
    format!("{mebibytes:.1} MiB")
}

/// How much longer `a` is than `b`; negative if it is shorter.
pub(crate) fn added(a: Duration, b: Duration) -> String {
    format!("{:+.1} us", (a.as_secs_f64() - b.as_secs_f64()) * 1e6)
}

pub(crate) fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64()
}

/// Returns the median.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
