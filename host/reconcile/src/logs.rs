//! What services print, and what the supervisor does with them, as one stream for any number of
//! readers (docs/spec/device.md#local-logs).
//!
//! The engines' log streams are read only while somebody listens. Every reader sees lines from the
//! moment it came; one that is slow loses lines, is told how many, and holds up nobody.
//!
//! ```text
//! loop ── sources (watch) ──► hub task ── one task a container ─┐
//! loop ── system lines ───────────────────────────────────────┴─► broadcast ──► readers
//! ```

mod positions;

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use device_types::LogEvent;
use engine::{Engines, LogsFrom};
use futures::{Stream, StreamExt};
use model::{ContainerId, EngineKind, ServiceId, ServiceName};
use store::Store;
use tokio::sync::{broadcast, watch};
use tokio::task::AbortHandle;
use tokio_stream::wrappers::BroadcastStream;
use tokio_stream::wrappers::errors::BroadcastStreamRecvError;
use tokio_util::sync::CancellationToken;

use crate::clock::now_ms;
use positions::{Positions, ResumePoint, after};

/// How long after a log stream ended a new one is asked for.
const REATTACH: Duration = Duration::from_secs(1);
/// Between two looks whether readers have come on, while what was printed before is read, and how often at most.
const PACE: Duration = Duration::from_millis(20);
const MOST_PACES: u32 = 500;

/// A reader. The stream ends with the supervisor.
pub struct LogSubscription {
    lines: BroadcastStream<Arc<LogEvent>>,
    /// While it is set, lines are left out.
    silent: Option<Arc<AtomicBool>>,
    /// Where it is remembered how far this reader has come.
    positions: Option<Arc<Positions>>,
    _counted: watch::Receiver<()>,
}

impl Stream for LogSubscription {
    type Item = Arc<LogEvent>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let line = loop {
            let line = futures::ready!(self.lines.poll_next_unpin(cx));
            let is_silent = |silent: &Arc<AtomicBool>| silent.load(Ordering::Relaxed);
            if line.is_none() || !self.silent.as_ref().is_some_and(is_silent) {
                break line;
            }
        };
        Poll::Ready(line.map(|line| match line {
            Ok(line) => {
                if let (Some(positions), Some(container), Some(at)) =
                    (&self.positions, &line.container, line.timestamp)
                {
                    positions.passed(container, at);
                }
                line
            }
            Err(BroadcastStreamRecvError::Lagged(lost)) => Arc::new(system(format!(
                "{lost} lines were lost, since they came faster than they were read"
            ))),
        }))
    }
}

/// A container whose output belongs into the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogSource {
    pub engine: EngineKind,
    pub service: ServiceName,
    pub id: ServiceId,
}

pub(crate) type LogSources = BTreeMap<ContainerId, LogSource>;

/// The hub. Cheap to clone.
#[derive(Clone)]
pub(crate) struct LogHub {
    lines: broadcast::Sender<Arc<LogEvent>>,
    /// Lines that are kept for readers that are behind.
    capacity: usize,
    /// Counts readers by its receivers.
    readers: Arc<watch::Sender<()>>,
    /// Told when a reader comes.
    came: Arc<tokio::sync::Notify>,
    sources: Arc<watch::Sender<LogSources>>,
    silent: Arc<AtomicBool>,
    /// How far the cloud's reader has come.
    positions: Arc<Positions>,
}

impl LogHub {
    /// `capacity` lines are kept for readers that are behind; `store` remembers how far the cloud's has come.
    pub(crate) fn start(
        engines: Engines,
        capacity: usize,
        store: &Store,
        stop: CancellationToken,
    ) -> Self {
        let positions = store.log_positions().unwrap_or_else(|error| {
            tracing::warn!(%error, "what was printed while the supervisor was down is not sent to the cloud");
            BTreeMap::new()
        });
        let hub = LogHub {
            lines: broadcast::Sender::new(capacity.max(1)),
            capacity: capacity.max(1),
            readers: Arc::new(watch::Sender::new(())),
            came: Arc::default(),
            sources: Arc::new(watch::Sender::new(LogSources::new())),
            silent: Arc::default(),
            positions: Arc::new(Positions::new(positions)),
        };
        tokio::spawn(positions::keeping(
            hub.positions.clone(),
            store.clone(),
            stop.clone(),
        ));
        tokio::spawn(stop.run_until_cancelled_owned(hub.clone().run(engines)));
        hub
    }

    /// A reader on the device, who hears nothing outside local mode.
    pub(crate) fn subscribe(&self) -> LogSubscription {
        self.subscription(Some(Arc::clone(&self.silent)), None)
    }

    /// The cloud's reader, who hears all there is, and what was printed while it was away.
    pub(crate) fn subscribe_for_the_cloud(&self) -> LogSubscription {
        self.subscription(None, Some(Arc::clone(&self.positions)))
    }

    /// The cloud wants nothing of what was printed so far.
    pub(crate) fn forget_for_the_cloud(&self) {
        self.positions.forget();
    }

    /// Writes how far the cloud's reader has come. Blocks.
    pub(crate) fn keep_positions(&self, store: &Store) {
        self.positions.keep(store);
    }

    fn subscription(
        &self,
        silent: Option<Arc<AtomicBool>>,
        positions: Option<Arc<Positions>>,
    ) -> LogSubscription {
        let subscription = LogSubscription {
            lines: BroadcastStream::new(self.lines.subscribe()),
            silent,
            positions,
            _counted: self.readers.subscribe(),
        };
        self.came.notify_one();
        subscription
    }

    /// A line of the supervisor's own.
    pub(crate) fn system(&self, message: String) {
        tracing::info!("{message}");
        self.send(system(message));
    }

    /// As [`LogHub::system`], of what a person should look at.
    pub(crate) fn warning(&self, message: String) {
        tracing::warn!("{message}");
        self.send(system(message));
    }

    /// A silent hub keeps its readers and tells those on the device nothing.
    pub(crate) fn set_silent(&self, silent: bool) {
        self.silent.store(silent, Ordering::Relaxed);
    }

    /// Which containers are read while somebody listens.
    pub(crate) fn set_sources(&self, sources: LogSources) {
        self.sources.send_if_modified(|held| {
            let changed = *held != sources;
            *held = sources;
            changed
        });
    }

    fn send(&self, line: LogEvent) {
        // Without readers there is nobody to tell.
        let _ = self.lines.send(Arc::new(line));
    }

    async fn run(self, engines: Engines) {
        loop {
            while self.readers.receiver_count() == 0 {
                self.came.notified().await;
            }
            // Whoever listens is content with lines from now on; but of a container that starts while
            // somebody listens, the first line counts, and of one that the cloud has lines of, the next.
            let mut attached = LogTasks::default();
            let mut sources = self.sources.subscribe();
            let mut from = LogsFrom::Now;
            loop {
                let current = sources.borrow_and_update().clone();
                attached.follow(&self, &engines, &current, from);
                from = LogsFrom::Start;
                tokio::select! {
                    () = self.readers.closed() => break,
                    changed = sources.changed() => if changed.is_err() { return },
                }
            }
        }
    }

    /// Passes on what one container prints, for as long as the engine has it.
    async fn read(
        self,
        engines: Engines,
        container: ContainerId,
        source: LogSource,
        from: LogsFrom,
    ) {
        let Some(engine) = engines.get(source.engine) else {
            return;
        };
        let mut position = self.positions.of(&container);
        loop {
            let (begin, mut resumed) = match position.map(ResumePoint::after) {
                Some((begin, resumed)) => (begin, Some(resumed)),
                None => (from, None),
            };
            let opened_at = now_ms();
            match engine.logs(&container, begin).await {
                Ok(mut lines) => {
                    while let Some(line) = lines.next().await {
                        match line {
                            Ok(line) if resumed.as_mut().is_some_and(|has| has.has(&line)) => {}
                            Ok(line) => {
                                if line.timestamp_ms < opened_at {
                                    self.pace().await;
                                }
                                position = Some(after(position, line.timestamp_ms));
                                self.send(LogEvent {
                                    message: line.message,
                                    timestamp: Some(line.timestamp_ms),
                                    service_name: Some(source.service.clone()),
                                    service_id: Some(source.id),
                                    is_stderr: line.stderr,
                                    is_system: false,
                                    container: Some(container.clone()),
                                });
                            }
                            Err(error) => {
                                tracing::debug!(%error, "lost the output of `{}`", source.service);
                                break;
                            }
                        }
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "failed to read the output of `{}`", source.service);
                }
            }
            // Where no line was seen, the next stream begins as this one was to: an engine that is too busy to open the
            // log of a new container costs none of its first lines.
            tokio::time::sleep(REATTACH).await;
        }
    }
}

impl LogHub {
    /// Gives readers time for what was printed before it is read: that comes as fast as a disk reads.
    async fn pace(&self) {
        for _ in 0..MOST_PACES {
            if self.lines.len() < self.capacity / 2 {
                return;
            }
            tokio::time::sleep(PACE).await;
        }
    }
}

/// The containers that are read; dropping it ends that.
#[derive(Default)]
struct LogTasks(BTreeMap<ContainerId, (LogSource, AbortHandle)>);

impl LogTasks {
    fn follow(&mut self, hub: &LogHub, engines: &Engines, wanted: &LogSources, from: LogsFrom) {
        self.0.retain(|container, (source, task)| {
            let stays = wanted.get(container) == Some(source);
            if !stays {
                task.abort();
            }
            stays
        });
        for (container, source) in wanted {
            if !self.0.contains_key(container) {
                let reading =
                    hub.clone()
                        .read(engines.clone(), container.clone(), source.clone(), from);
                let task = tokio::spawn(reading).abort_handle();
                self.0.insert(container.clone(), (source.clone(), task));
            }
        }
    }
}

impl Drop for LogTasks {
    fn drop(&mut self) {
        for (_, task) in self.0.values() {
            task.abort();
        }
    }
}

fn system(message: String) -> LogEvent {
    LogEvent::system(message, Some(now_ms()))
}
