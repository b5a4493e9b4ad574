//! Sends printed lines to the cloud: in batches over the long request while that lasts, otherwise by way of the disk.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use model::{Backoff, error_chain};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::live::{self, LiveUpload};
use super::spool::Spool;
use super::{IDLE, LogLine, LogShipping, LogSink, LogSource};
use crate::client::CloudError;
use crate::clock::now_ms;
use crate::retry;

/// How long lines are collected before they are sent.
const GATHER: Duration = Duration::from_millis(100);
/// The maximum size of a batch, in bytes.
const BATCH: usize = 64 << 10;
/// The wait after the first failure, and the longest.
const BASE: Duration = Duration::from_secs(5);
const CAP: Duration = Duration::from_secs(300);

/// Sends lines while they are wanted, and keeps track of waiting ones.
pub(super) struct Upload {
    sink: Arc<dyn LogSink>,
    spool: Arc<Mutex<Spool>>,
    /// There are lines on the disk, or lost lines that were not reported.
    waits: bool,
    live: Option<LiveUpload>,
    sending: Option<LogTransfer>,
    backoff: Backoff,
    /// The time of the next attempt.
    next: Instant,
    /// The number of lines left out because the cloud was too slow.
    suppressed: u64,
}

/// A transfer of waiting data that is under way.
struct LogTransfer {
    what: LogBacklog,
    request: BoxFuture<'static, Result<(), CloudError>>,
}

#[derive(Clone, Copy)]
enum LogBacklog {
    /// A message that this many lines were lost.
    Lost(u64),
    /// A segment, by its number.
    Segment(u64),
}

/// Lines with their ends.
#[derive(Default)]
struct Batch {
    lines: Vec<Vec<u8>>,
    bytes: usize,
    since: Option<Instant>,
}

impl Batch {
    fn push(&mut self, line: Vec<u8>) {
        self.since.get_or_insert_with(Instant::now);
        self.bytes += line.len();
        self.lines.push(line);
    }

    fn is_due(&self) -> Option<Instant> {
        let since = self.since?;
        Some(if self.bytes >= BATCH {
            since
        } else {
            since + GATHER
        })
    }
}

impl Upload {
    pub(super) fn new(sink: Arc<dyn LogSink>, spool: Spool) -> Self {
        Upload {
            sink,
            waits: !spool.is_empty() || spool.lost() > 0,
            spool: Arc::new(Mutex::new(spool)),
            live: None,
            sending: None,
            backoff: Backoff::new(BASE),
            next: Instant::now(),
            suppressed: 0,
        }
    }

    /// Removes all waiting lines.
    pub(super) async fn clear(&mut self) {
        self.on_disk(Spool::clear).await;
        self.waits = false;
    }

    /// Runs until logs are no longer wanted; returns `None` if the supervisor stops.
    pub(super) async fn run(
        &mut self,
        mut lines: BoxStream<'static, LogLine>,
        source: &dyn LogSource,
        stop: &CancellationToken,
    ) -> Option<()> {
        let mut batch = Batch::default();
        loop {
            let idle = self.live.as_ref().map(|live| live.wrote() + IDLE);
            let may_try = self.waits && self.live.is_none() && self.sending.is_none();
            let try_at = may_try.then_some(self.next);
            let sending = self.sending.as_mut();
            tokio::select! {
                line = lines.next(), if batch.bytes < BATCH => match line {
                    Some(line) => {
                        if let Some(line) = line.written() {
                            batch.push(line);
                        }
                    }
                    None => return None,
                },
                () = or_never(batch.is_due().map(sleep_until)) => {
                    self.bring(std::mem::take(&mut batch).lines).await;
                }
                answer = or_never(self.live.as_mut().map(LiveUpload::ended)) => self.broke(answer).await,
                answer = or_never(sending.map(|sending| &mut sending.request)) => {
                    self.sent(answer).await;
                }
                () = or_never(try_at.map(sleep_until)) => self.send_what_waited().await,
                () = or_never(idle.map(sleep_until)) => self.live = None,
                () = source.changed() => {
                    if source.shipping() != LogShipping::Yes {
                        self.live = None;
                        return Some(());
                    }
                }
                () = stop.cancelled() => {
                    let left = self.live.take().map(LiveUpload::not_sent).unwrap_or_default();
                    let left: Vec<_> = left.into_iter().chain(batch.lines).collect();
                    if !left.is_empty() {
                        self.on_disk(move |spool| spool.append(&left)).await;
                    }
                    return None;
                }
            }
        }
    }

    /// Sends lines to the cloud, or writes them to the disk.
    async fn bring(&mut self, mut lines: Vec<Vec<u8>>) {
        let may_open = !self.waits && self.sending.is_none() && Instant::now() >= self.next;
        if self.live.is_none() && may_open {
            self.live = Some(LiveUpload::open(&*self.sink));
        }
        let Some(live) = &mut self.live else {
            self.waits = true;
            self.on_disk(move |spool| spool.append(&lines)).await;
            return;
        };
        let count = lines.len() as u64;
        if !live.has_room() {
            self.suppressed += count;
            return;
        }
        if self.suppressed > 0 {
            lines.splice(0..0, notice(self.suppressed, "due to high load"));
            self.suppressed = 0;
        }
        live.write(lines);
    }

    /// Handles the end of the long request, if it was not ended here.
    async fn broke(&mut self, answer: Result<(), CloudError>) {
        let Some(live) = self.live.take() else { return };
        if live.opened().elapsed() >= IDLE {
            self.backoff.reset();
        }
        if let Err(error) = answer {
            // The cloud drops lines that it has already.
            let lines = live.kept();
            if !lines.is_empty() {
                self.waits = true;
                self.on_disk(move |spool| spool.append(&lines)).await;
            }
            self.failed(&error);
        } else {
            // The cloud has received all lines so far, and accepts no more for now.
            self.hold_off(None);
        }
    }

    async fn send_what_waited(&mut self) {
        let waited = self.on_disk(|spool| match spool.lost() {
            0 => spool
                .oldest()
                .map(|oldest| oldest.map(|(number, packed)| (LogBacklog::Segment(number), packed))),
            lost => Ok(Some((
                LogBacklog::Lost(lost),
                live::packed(&notice(lost, "while the cloud was away")),
            ))),
        });
        match waited.await {
            Some(Ok(Some((what, packed)))) => {
                let request = self.sink.send(packed);
                self.sending = Some(LogTransfer { what, request });
            }
            Some(Ok(None)) => self.waits = false,
            Some(Err(error)) => {
                tracing::warn!(%error, "failed to read log lines that wait for the cloud");
                self.hold_off(None);
            }
            None => self.waits = false,
        }
    }

    async fn sent(&mut self, answer: Result<(), CloudError>) {
        let Some(LogTransfer { what, .. }) = self.sending.take() else {
            return;
        };
        let accepted = answer.is_ok();
        match &answer {
            Ok(()) => {
                self.backoff.reset();
                self.next = Instant::now();
            }
            Err(error) if error.is_final() => {
                tracing::error!("the cloud rejected log lines that had waited for it: {error}");
                self.hold_off(error.retry_after());
            }
            Err(error) => return self.failed(error),
        }
        self.on_disk(move |spool| match what {
            LogBacklog::Lost(lines) if accepted => spool.count_reported(lines),
            LogBacklog::Lost(_) => {}
            LogBacklog::Segment(number) => spool.forget(number, accepted),
        })
        .await;
    }

    fn failed(&mut self, error: &CloudError) {
        self.hold_off(error.retry_after());
        let wait = self.next.duration_since(Instant::now());
        let why = error_chain(error);
        tracing::warn!(
            "failed to send logs to the cloud; they wait on the disk, trying again in {wait:.0?}: {why}"
        );
    }

    fn hold_off(&mut self, retry_after: Option<Duration>) {
        let wait = retry::after_failure(&mut self.backoff, CAP, retry_after);
        self.next = Instant::now() + wait;
    }

    /// Works on the spool; returns `None` if that panics, or the runtime ends.
    async fn on_disk<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Spool) -> T + Send + 'static,
    ) -> Option<T> {
        let spool = Arc::clone(&self.spool);
        let done = tokio::task::spawn_blocking(move || {
            let mut spool = spool.lock();
            work(&mut spool)
        });
        done.await.ok()
    }
}

/// Returns a line of the supervisor's own about missing lines.
fn notice(lines: u64, why: &str) -> Vec<Vec<u8>> {
    let line = LogLine {
        message: format!("Warning: Suppressed {lines} message(s) {why}"),
        timestamp_ms: now_ms(),
        service: None,
        is_stderr: false,
    };
    line.written().into_iter().collect()
}

/// Waits for the future; without one it waits for ever.
async fn or_never<F: Future>(future: Option<F>) -> F::Output {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}
