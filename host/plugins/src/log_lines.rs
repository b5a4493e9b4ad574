//! The lines that plugins write to the log, those about their failures, and those of the host about what they make it do,
//! over all calls: lines beyond the limit are counted, and reported in one line once there is room again. Each kind has a
//! limit of its own: a plugin that writes many lines is still named when it fails, callers that make it fail do not
//! silence it, and nothing else that it does hides which units it restarts.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::bounds::{
    FAILURES_A_SECOND, FAILURES_AT_ONCE, HOST_LINES_A_SECOND, HOST_LINES_AT_ONCE, LINES_A_SECOND,
    LINES_AT_ONCE, RESTARTS_A_SECOND, RESTARTS_AT_ONCE,
};
use crate::recent_lines::RecentLines;

/// How much plugins may write to the log, and the last lines of it. Clones share both.
#[derive(Debug, Clone)]
pub(crate) struct PluginLogs {
    lines: Arc<LineBudget>,
    failures: Arc<LineBudget>,
    host_lines: Arc<LineBudget>,
    restarts: Arc<LineBudget>,
    pub(crate) recent: RecentLines,
}

/// The part of one plugin in [`PluginLogs`].
#[derive(Debug, Clone)]
pub(crate) struct LogShare {
    pub(crate) lines: LineShare,
    /// The lines about its failures, and the events with them.
    pub(crate) failures: LineShare,
    /// The host's lines about what it makes the host do.
    pub(crate) host_lines: LineShare,
    /// The host's lines about units that it restarts for the plugin.
    pub(crate) restarts: LineShare,
    /// The place for its last lines, together with those of others.
    pub(crate) recent: RecentLines,
}

/// A kind of lines, and how many of it all plugins together may cause.
#[derive(Debug)]
struct LineKind {
    at_once: u32,
    a_second: u32,
    /// What the log says about those beyond that, after their number.
    loss: &'static str,
}

/// The lines that plugins write themselves.
const LINES: LineKind = LineKind {
    at_once: LINES_AT_ONCE,
    a_second: LINES_A_SECOND,
    loss: "lines of the plugin were not written, because it or all plugins together wrote too many",
};
/// The lines about calls of plugins that failed.
const FAILURES: LineKind = LineKind {
    at_once: FAILURES_AT_ONCE,
    a_second: FAILURES_A_SECOND,
    loss: "failures of the plugin's calls were not logged, because it or all plugins together had too many",
};

/// The host's own lines about what plugins make it do, and what fails of it.
const HOST_LINES: LineKind = LineKind {
    at_once: HOST_LINES_AT_ONCE,
    a_second: HOST_LINES_A_SECOND,
    loss: "lines about what the plugin made the supervisor do were not written, because it or all plugins together caused \
           too many",
};

/// The host's lines about units that it restarts for plugins.
const RESTARTS: LineKind = LineKind {
    at_once: RESTARTS_AT_ONCE,
    a_second: RESTARTS_A_SECOND,
    loss: "restarts of units were not logged, because the plugin or all plugins together requested too many",
};

/// How many lines of a kind all plugins together may cause.
#[derive(Debug)]
struct LineBudget {
    kind: LineKind,
    all: Mutex<Allowance>,
}

/// How many of these lines one plugin may cause: at most half of them. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct LineShare {
    budget: Arc<LineBudget>,
    own: Arc<Mutex<Allowance>>,
}

/// Lines that may still be written; it grows over time.
#[derive(Debug)]
struct Allowance {
    left: f64,
    most: f64,
    a_second: f64,
    at: Instant,
    /// Lines that were dropped since the last one that was written.
    lost: u64,
}

impl Allowance {
    /// Creates an allowance of 1/`part` of that of all plugins.
    fn new(kind: &LineKind, part: u32) -> Allowance {
        let most = f64::from(kind.at_once / part);
        Allowance {
            left: most,
            most,
            a_second: f64::from(kind.a_second / part),
            at: Instant::now(),
            lost: 0,
        }
    }

    /// Takes one line, if there is one.
    fn take(&mut self) -> bool {
        let now = Instant::now();
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.left = (self.left + passed * self.a_second).min(self.most);
        self.at = now;
        let is_left = self.left >= 1.0;
        if is_left {
            self.left -= 1.0;
        }
        is_left
    }
}

impl Default for PluginLogs {
    fn default() -> Self {
        PluginLogs {
            lines: LineBudget::new(LINES),
            failures: LineBudget::new(FAILURES),
            host_lines: LineBudget::new(HOST_LINES),
            restarts: LineBudget::new(RESTARTS),
            recent: RecentLines::default(),
        }
    }
}

impl PluginLogs {
    /// Creates the part of a plugin.
    pub(crate) fn share(&self) -> LogShare {
        LogShare {
            lines: self.lines.share(),
            failures: self.failures.share(),
            host_lines: self.host_lines.share(),
            restarts: self.restarts.share(),
            recent: self.recent.clone(),
        }
    }
}

impl LineBudget {
    fn new(kind: LineKind) -> Arc<LineBudget> {
        let all = Mutex::new(Allowance::new(&kind, 1));
        Arc::new(LineBudget { kind, all })
    }

    /// Creates the share of a plugin.
    fn share(self: &Arc<Self>) -> LineShare {
        LineShare {
            budget: Arc::clone(self),
            own: Arc::new(Mutex::new(Allowance::new(&self.kind, 2))),
        }
    }
}

impl LineShare {
    /// Returns whether a line of `plugin` may be written. If one may be again, logs how many were lost.
    pub(crate) fn take(&self, plugin: &str) -> bool {
        let mut own = self.own.lock();
        let mut all = self.budget.all.lock();
        if !own.take() || !all.take() {
            own.lost += 1;
            return false;
        }
        let lost = std::mem::take(&mut own.lost);
        if lost > 0 {
            tracing::warn!(plugin, "{lost} {}", self.budget.kind.loss);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_plugin_that_floods_the_log_has_half_of_it_and_waits_for_more() {
        let logs = PluginLogs::default();
        let shares = [(); 3].map(|()| logs.share());
        let [one, other, third] = shares.map(|share| share.lines);
        let written = |share: &LineShare| (0..10_000).filter(|_| share.take("a")).count();
        assert_eq!(written(&one), 400);
        assert_eq!(written(&other), 400);
        assert_eq!(written(&third), 0);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(written(&one), 20);
        assert_eq!(written(&third), 20);
    }
}
