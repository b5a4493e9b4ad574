//! The output of services and the actions of the supervisor, as one stream for any number of readers
//! (docs/spec/device.md#local-logs).
//!
//! The engines' log streams are read only while there are readers. Every reader receives lines from the moment it
//! subscribes. A slow reader loses lines, receives their number, and delays nobody.
//!
//! ```text
//! loop ── sources (watch) ──► hub task ── one task per container ─┐
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
use parking_lot::Mutex;
use store::Store;
use tokio::sync::{broadcast, watch};
use tokio::task::AbortHandle;
use tokio_stream::wrappers::BroadcastStream;
use tokio_stream::wrappers::errors::BroadcastStreamRecvError;
use tokio_util::sync::CancellationToken;

use crate::clock::now_ms;
use positions::{Positions, ResumePoint, after};

/// The delay before a log stream that has ended is opened again.
const REATTACH: Duration = Duration::from_secs(1);
/// The interval for checking whether readers have caught up while earlier output is read, and the maximum number of
/// checks.
const PACE: Duration = Duration::from_millis(20);
const MOST_PACES: u32 = 500;

/// A reader. The stream ends with the supervisor.
pub struct LogSubscription {
    lines: BroadcastStream<Arc<LogEvent>>,
    /// While this is set, lines are left out.
    silent: Option<Arc<AtomicBool>>,
    /// The positions in which the progress of this reader is recorded.
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
                "{lost} lines were lost, because they were written faster than they were read"
            ))),
        }))
    }
}

/// A container whose output belongs to the stream.
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
    /// The number of lines kept for readers that lag behind.
    capacity: usize,
    /// Counts readers by its receivers.
    readers: Arc<watch::Sender<()>>,
    /// When the first of the present readers subscribed, in milliseconds since the epoch: the output of services is read
    /// from then on, however long an engine takes to open its log.
    read_since: Arc<Mutex<i64>>,
    /// Notified when a reader subscribes.
    came: Arc<tokio::sync::Notify>,
    sources: Arc<watch::Sender<LogSources>>,
    silent: Arc<AtomicBool>,
    /// The positions of the cloud's reader.
    positions: Arc<Positions>,
}

impl LogHub {
    /// Starts the hub. `capacity` lines are kept for readers that lag behind; `store` keeps the positions of the
    /// cloud's reader.
    pub(crate) fn start(
        engines: Engines,
        capacity: usize,
        store: &Store,
        stop: CancellationToken,
    ) -> Self {
        let positions = store.log_positions().unwrap_or_else(|error| {
            tracing::warn!(
                %error,
                "failed to read how far the logs were read; output from before this start is not sent to the cloud"
            );
            BTreeMap::new()
        });
        let hub = LogHub {
            lines: broadcast::Sender::new(capacity.max(1)),
            capacity: capacity.max(1),
            readers: Arc::new(watch::Sender::new(())),
            read_since: Arc::default(),
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

    /// Returns a reader for the device, which receives nothing outside local mode.
    pub(crate) fn subscribe(&self) -> LogSubscription {
        self.subscription(Some(Arc::clone(&self.silent)), None)
    }

    /// Returns the cloud's reader, which receives everything, including the output while it was disconnected.
    pub(crate) fn subscribe_for_the_cloud(&self) -> LogSubscription {
        self.subscription(None, Some(Arc::clone(&self.positions)))
    }

    /// Forgets the positions of the cloud's reader: it needs nothing of the output so far.
    pub(crate) fn forget_for_the_cloud(&self) {
        self.positions.forget();
    }

    /// Writes the positions of the cloud's reader. Blocks.
    pub(crate) fn keep_positions(&self, store: &Store) {
        self.positions.keep(store);
    }

    fn subscription(
        &self,
        silent: Option<Arc<AtomicBool>>,
        positions: Option<Arc<Positions>>,
    ) -> LogSubscription {
        let lines = BroadcastStream::new(self.lines.subscribe());
        let counted = {
            // Locked until this reader is counted, so that only the first of several sets the time.
            let mut since = self.read_since.lock();
            if self.readers.receiver_count() == 0 {
                *since = now_ms();
            }
            self.readers.subscribe()
        };
        let subscription = LogSubscription {
            lines,
            silent,
            positions,
            _counted: counted,
        };
        self.came.notify_one();
        subscription
    }

    /// Sends a line of the supervisor's own.
    pub(crate) fn system(&self, message: String) {
        tracing::info!("{message}");
        self.send(system(message));
    }

    /// Like [`LogHub::system`], for something that needs a person's attention.
    pub(crate) fn warning(&self, message: String) {
        tracing::warn!("{message}");
        self.send(system(message));
    }

    /// Silences the hub or ends that: a silent hub keeps its readers, but sends nothing to those on the device.
    pub(crate) fn set_silent(&self, silent: bool) {
        self.silent.store(silent, Ordering::Relaxed);
    }

    /// Sets the containers that are read while there are readers.
    pub(crate) fn set_sources(&self, sources: LogSources) {
        self.sources.send_if_modified(|held| {
            let changed = *held != sources;
            *held = sources;
            changed
        });
    }

    fn send(&self, line: LogEvent) {
        // Without readers, the line is dropped.
        let _ = self.lines.send(Arc::new(line));
    }

    async fn run(self, engines: Engines) {
        loop {
            while self.readers.receiver_count() == 0 {
                self.came.notified().await;
            }
            // New readers only need lines since they subscribed. But if a container starts while there are readers, its
            // output is read from the first line, and if the cloud already has lines of it, from the next one.
            let mut attached = LogTasks::default();
            let mut sources = self.sources.subscribe();
            let mut from = LogsFrom::Since(*self.read_since.lock());
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

    /// Forwards the output of one container for as long as the engine has it.
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
        let mut position = self.positions.get(&container);
        loop {
            let (begin, mut resumed) = match position.map(ResumePoint::after) {
                Some((begin, resumed)) => (begin, Some(resumed)),
                None => (not_in_the_future(from), None),
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
                                tracing::debug!(
                                    %error,
                                    service = %source.service,
                                    "lost the output of `{}`",
                                    source.service
                                );
                                break;
                            }
                        }
                    }
                }
                Err(error) => {
                    tracing::debug!(
                        %error,
                        service = %source.service,
                        "failed to read the output of `{}`",
                        source.service
                    );
                }
            }
            // If no line was seen, the next stream begins at the same position: an engine that is too busy to open the
            // log of a new container loses none of its first lines.
            tokio::time::sleep(REATTACH).await;
        }
    }
}

impl LogHub {
    /// Gives readers time to receive earlier output: it arrives as fast as a disk can be read.
    async fn pace(&self) {
        for _ in 0..MOST_PACES {
            if self.lines.len() < self.capacity / 2 {
                return;
            }
            tokio::time::sleep(PACE).await;
        }
    }
}

/// The containers that are read; dropping it stops the reading.
#[derive(Default)]
struct LogTasks(BTreeMap<ContainerId, (LogSource, AbortHandle)>);

impl LogTasks {
    fn follow(&mut self, hub: &LogHub, engines: &Engines, sources: &LogSources, from: LogsFrom) {
        self.0.retain(|container, (source, task)| {
            let stays = sources.get(container) == Some(source);
            if !stays {
                task.abort();
            }
            stays
        });
        for (container, source) in sources {
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

/// Returns the start of a stream to open now: if the clock has been set back since `from` was chosen, new lines are older
/// than that time, and would be left out.
fn not_in_the_future(from: LogsFrom) -> LogsFrom {
    match from {
        LogsFrom::Since(since) => LogsFrom::Since(since.min(now_ms())),
        LogsFrom::Start => LogsFrom::Start,
    }
}

fn system(message: String) -> LogEvent {
    LogEvent::system(message, Some(now_ms()))
}
