//! The stored lines of a device, followed by its new ones.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use data::RowRight;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::history::HistoryError;
use super::line::LogLine;
use super::live::{LineEvent, LineSubscription};
use super::span::{KEPT, KEPT_FOR, Span};
use crate::clock::now;
use crate::cloud::{Cloud, SharedCloud};

/// How often a connection without lines gets a blank one.
const ALIVE: Duration = Duration::from_secs(58);
/// How much the clocks of replicas and of the server between them may differ, in milliseconds.
const SKEW: i64 = 60_000;
/// How often missed lines are requested, and the delay between two attempts.
const TRIES: usize = 10;
const AGAIN: Duration = Duration::from_secs(1);

/// Reads the latest lines of a device, the oldest first, for a caller with the right to read it.
///
/// # Errors
/// If they cannot be read.
pub async fn latest(cloud: &Cloud, device: &RowRight) -> Result<Vec<LogLine>, HistoryError> {
    cloud.logs.read(&cloud.database, latest_span(device)).await
}

/// Reads the latest lines, and follows the device after that.
///
/// # Errors
/// As for [`latest`].
pub async fn followed(cloud: &SharedCloud, device: &RowRight) -> Result<LogTail, HistoryError> {
    LogTail::load(cloud, latest_span(device)).await
}

/// Returns the span of all stored lines.
fn latest_span(device: &RowRight) -> Span {
    Span {
        device: device.id(),
        count: KEPT,
        since: now() - KEPT_FOR,
    }
}

/// The stored lines of a device, then its new lines as they arrive.
pub struct LogTail {
    cloud: Arc<Cloud>,
    device: i64,
    recent: RecentLines,
    first: Option<Vec<LogLine>>,
    followed: LineSubscription,
    /// Changes when lines may have arrived that were not passed on.
    lagged: watch::Receiver<u64>,
    /// The last time when no lines were missing, in milliseconds.
    complete_until: i64,
}

impl LogTail {
    /// Reads the lines of this span, and follows the device after that.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn load(cloud: &SharedCloud, span: Span) -> Result<Self, HistoryError> {
        let device = span.device;
        let history = &cloud.logs;
        // Lines that are already stored must not count as missed later.
        let before = if cloud.bus.has_others() {
            let latest = Span {
                device,
                count: KEPT,
                since: now() - SKEW,
            };
            history.read(&cloud.database, latest).await?
        } else {
            Vec::new()
        };
        // Subscribing precedes reading, so every line is in at least one of the two.
        let lagged = cloud.bus.lagged();
        let followed = history.follow(device).await?;
        let lines = history.read(&cloud.database, span).await?;
        Ok(LogTail {
            cloud: cloud.clone(),
            device,
            recent: RecentLines::from_lines(before.iter().chain(&lines)),
            first: Some(lines),
            followed,
            lagged,
            complete_until: now(),
        })
    }

    /// Returns the next lines: first the stored ones, then new ones as they are written, or an empty list as a sign of
    /// life after a while; none when the cloud ends.
    pub async fn next(&mut self) -> Option<Vec<LogLine>> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        loop {
            let stop = self.cloud.stop.clone();
            let lines = tokio::select! {
                () = stop.cancelled() => return None,
                next = timeout(ALIVE, self.followed.next()) => match next {
                    Err(_) => return Some(Vec::new()),
                    Ok(next) => self.lines(next?),
                },
                Ok(()) = self.lagged.changed() => self.caught_up().await,
            };
            let mut lines = lines;
            while lines.len() < KEPT
                && let Some(more) = self.followed.ready()
            {
                lines.extend(self.lines(more));
            }
            self.complete_until = now();
            if !lines.is_empty() {
                return Some(lines);
            }
        }
    }

    fn lines(&mut self, next: LineEvent) -> Vec<LogLine> {
        match next {
            LineEvent::Lines(lines) => {
                let new = lines.iter().filter(|line| self.recent.is_new(line.id));
                new.cloned().collect()
            }
            LineEvent::Lagged(groups) => vec![LogLine::system(
                format!(
                    "Warning: Skipped {groups} group(s) of messages, because they are read too slowly"
                ),
                now(),
            )],
        }
    }

    /// Reads lines that were stored but not passed on.
    async fn caught_up(&mut self) -> Vec<LogLine> {
        let span = Span {
            device: self.device,
            count: KEPT,
            since: self.complete_until - SKEW,
        };
        for _ in 0..TRIES {
            match self.cloud.logs.read(&self.cloud.database, span).await {
                Ok(mut lines) => {
                    lines.retain(|line| self.recent.is_new(line.id));
                    return lines;
                }
                Err(error) => {
                    tracing::warn!("cannot read the log lines that were missed yet: {error}");
                    sleep(AGAIN).await;
                }
            }
        }
        let warning = "Warning: Some messages may be missing here".to_owned();
        vec![LogLine::system(warning, now())]
    }
}

/// The latest lines that were sent, which may arrive a second time.
#[derive(Default)]
struct RecentLines {
    ids: HashSet<i64>,
    order: VecDeque<i64>,
}

impl RecentLines {
    fn from_lines<'a>(lines: impl Iterator<Item = &'a LogLine>) -> Self {
        let mut recent = RecentLines::default();
        for line in lines {
            recent.is_new(line.id);
        }
        recent
    }

    /// Whether a line was not sent before; marks it as sent.
    fn is_new(&mut self, id: i64) -> bool {
        if !self.ids.insert(id) {
            return false;
        }
        self.order.push_back(id);
        if self.order.len() > 2 * KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
        true
    }
}
