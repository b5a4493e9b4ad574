//! The lines that plugins write to the log, over all calls: lines beyond the limit are counted, and reported in one
//! line once there is room again.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::bounds::{LINES_A_SECOND, LINES_AT_ONCE};
use crate::recent_lines::RecentLines;

/// How much plugins may write to the log, and the last lines of it. Clones share both.
#[derive(Debug, Clone, Default)]
pub(crate) struct PluginLogs {
    pub(crate) budget: Arc<LineBudget>,
    pub(crate) recent: RecentLines,
}

/// The part of one plugin in [`PluginLogs`].
#[derive(Debug, Clone)]
pub(crate) struct LogShare {
    pub(crate) lines: LineShare,
    /// The place for its last lines, together with those of others.
    pub(crate) recent: RecentLines,
}

/// How many lines all plugins together may write.
#[derive(Debug)]
pub(crate) struct LineBudget(Mutex<Allowance>);

/// How many of these lines one plugin may write: at most half of them. Clones share it.
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
    fn new(part: u32) -> Allowance {
        let most = f64::from(LINES_AT_ONCE / part);
        Allowance {
            left: most,
            most,
            a_second: f64::from(LINES_A_SECOND / part),
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

impl Default for LineBudget {
    fn default() -> Self {
        LineBudget(Mutex::new(Allowance::new(1)))
    }
}

impl PluginLogs {
    /// Creates the part of a plugin.
    pub(crate) fn share(&self) -> LogShare {
        LogShare {
            lines: self.budget.share(),
            recent: self.recent.clone(),
        }
    }
}

impl LineBudget {
    /// Creates the share of a plugin.
    pub(crate) fn share(self: &Arc<Self>) -> LineShare {
        LineShare {
            budget: Arc::clone(self),
            own: Arc::new(Mutex::new(Allowance::new(2))),
        }
    }
}

impl LineShare {
    /// Returns whether `plugin` may write a line. If it may again, logs how many it has lost.
    pub(crate) fn take(&self, plugin: &str) -> bool {
        let mut own = self.own.lock();
        let mut all = self.budget.0.lock();
        if !own.take() || !all.take() {
            own.lost += 1;
            return false;
        }
        let lost = std::mem::take(&mut own.lost);
        if lost > 0 {
            tracing::warn!(
                plugin,
                "{lost} lines of the plugin were not written, because it or all plugins together wrote too many"
            );
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
        let budget = Arc::<LineBudget>::default();
        let [one, other, third] = [(); 3].map(|()| budget.share());
        let written = |share: &LineShare| (0..10_000).filter(|_| share.take("a")).count();
        assert_eq!(written(&one), 400);
        assert_eq!(written(&other), 400);
        assert_eq!(written(&third), 0);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(written(&one), 20);
        assert_eq!(written(&third), 20);
    }
}
