//! Lines in a stream of the server between replicas (NATS JetStream), which keeps the latest lines of each device.
//!
//! ```text
//! keep    one message per line, on the subject of its device ──► the stream acknowledges each
//! follow  the subject, once for all local readers of a device
//! read    a consumer that exists for one answer
//! ```
//!
//! Followers do not read the stream itself, whose numbers differ from those sent to followers: each line gets its own
//! number from the replica that accepts it, and is sent to followers once.

mod reading;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType};
use async_nats::jetstream::{Context, ContextBuilder};
use data::{DataError, Database, DeviceGone, SystemPurpose};
use parking_lot::Mutex;
use tokio::sync::broadcast::Sender;
use tokio::sync::{Notify, mpsc};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::line::LogLine;
use super::live::Lines;
use super::span::AppendError;
use crate::bus::{Bus, Nats};
use crate::configuration::NatsSettings;

/// How long the server may take to acknowledge a line, or to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long reading all lines of an answer may take.
const READ: Duration = Duration::from_secs(20);
/// Lines that wait for acknowledgement, of all devices together.
const UNDER_WAY: usize = 4096;
/// Maximum bytes of a message: a line of 10,000 characters, each escaped.
const LONGEST: i32 = 128 << 10;
/// How long a device that exists is not looked up again.
const PRESENT: Duration = Duration::from_secs(60);
/// Maximum number of devices cached as existing.
const MOST_PRESENT: usize = 200_000;
/// Deleted devices whose lines wait to be deleted; beyond this number, lines are only deleted by age.
const GONE: usize = 10_000;
/// Delay before the server is asked for the stream again.
const AGAIN: Duration = Duration::from_secs(1);

/// Why lines cannot be read or stored.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    #[error("the bus cannot be reached")]
    Away,
    #[error("the stream of log lines cannot be read: {0}")]
    Refused(String),
    #[error("reading log lines takes more than {READ:?}")]
    TooSlow,
}

/// The stream of lines.
pub struct Stream {
    nats: Arc<Nats>,
    bus: Bus,
    context: Context,
    settings: NatsSettings,
    present: Mutex<HashMap<i64, Instant>>,
    followed: LineSenders,
    /// The number of the next line accepted here.
    next: AtomicI64,
    /// Signals that the server has no such stream.
    missing: Notify,
    gone: mpsc::Sender<i64>,
    to_purge: Mutex<Option<mpsc::Receiver<i64>>>,
}

type LineSenders = Arc<tokio::sync::Mutex<HashMap<i64, Sender<Lines>>>>;

impl Stream {
    pub(super) fn new(nats: Arc<Nats>, bus: Bus, settings: NatsSettings) -> Self {
        let context = ContextBuilder::new()
            .timeout(PATIENCE)
            .ack_timeout(PATIENCE)
            .max_ack_inflight(UNDER_WAY)
            .build(nats.client().clone());
        let mut first = [0; 8];
        // Without random numbers, lines of two replicas may look identical to a reader that follows both.
        let _ = getrandom::fill(&mut first);
        let (gone, to_purge) = mpsc::channel(GONE);
        Stream {
            nats,
            bus,
            context,
            settings,
            present: Mutex::default(),
            followed: LineSenders::default(),
            next: AtomicI64::new(i64::from_ne_bytes(first)),
            missing: Notify::new(),
            gone,
            to_purge: Mutex::new(Some(to_purge)),
        }
    }

    /// Stores lines; returns when the server has them all.
    pub(super) async fn keep(
        &self,
        database: &Database,
        device: i64,
        lines: Vec<LogLine>,
    ) -> Result<(), AppendError> {
        match self.is_there(database, device).await {
            Ok(true) => {}
            Ok(false) => return Err(AppendError::Gone),
            Err(error) => {
                tracing::error!("log lines cannot be kept: {error}");
                return Err(AppendError::Unavailable);
            }
        }
        if !self.nats.is_connected() {
            return Err(AppendError::Unavailable);
        }
        let subject = self.nats.subjects().lines(device);
        let mut stored = Vec::with_capacity(lines.len());
        for mut line in lines {
            line.id = self.next.fetch_add(1, Ordering::Relaxed);
            let text = serde_json::to_vec(&line).map_err(|_| AppendError::Unavailable)?;
            let message = PublishMessage::build().payload(text.into());
            let sent = self.context.send_publish(subject.clone(), message).await;
            stored.push(sent.map_err(|error| self.not_kept(&error))?);
        }
        for stored in stored {
            stored.await.map_err(|error| self.not_kept(&error))?;
        }
        Ok(())
    }

    fn not_kept(&self, error: &async_nats::jetstream::context::PublishError) -> AppendError {
        tracing::warn!("log lines are not kept: {error}");
        if error.kind() == PublishErrorKind::StreamNotFound {
            self.missing.notify_one();
        }
        AppendError::Unavailable
    }

    /// Whether the device (still) exists.
    async fn is_there(&self, database: &Database, device: i64) -> Result<bool, DataError> {
        let since = self.present.lock().get(&device).copied();
        let was_there = since.is_some_and(|since| since.elapsed() < PRESENT);
        if was_there && self.bus.receives_all() {
            return Ok(true);
        }
        let select = SystemPurpose::Logs
            .sql("SELECT id FROM device WHERE id = ?")
            .with(device);
        let there = database.row(&select).await?.is_some();
        if there {
            let mut present = self.present.lock();
            if present.len() >= MOST_PRESENT {
                present.clear();
            }
            present.insert(device, Instant::now());
        }
        Ok(there)
    }

    /// Handles deleted devices: their lines are deleted too.
    pub(super) fn invalidate(&self, gone: &[DeviceGone]) {
        let mut present = self.present.lock();
        for device in gone {
            present.remove(&device.id);
            let _ = self.gone.try_send(device.id);
        }
    }

    /// Returns the limits of the stream: what the server stores, and for how long.
    fn config(&self) -> Config {
        let NatsSettings {
            log_lines,
            log_days,
            log_bytes,
            log_copies,
            ..
        } = self.settings;
        Config {
            name: self.nats.subjects().line_stream(),
            subjects: vec![self.nats.subjects().all_lines()],
            retention: RetentionPolicy::Limits,
            discard: DiscardPolicy::Old,
            storage: StorageType::File,
            max_messages: -1,
            max_messages_per_subject: i64::from(log_lines),
            max_bytes: log_bytes,
            max_age: Duration::from_secs(24 * 3600) * log_days,
            max_message_size: LONGEST,
            num_replicas: usize::from(log_copies),
            ..Config::default()
        }
    }

    /// Creates the stream with these limits on the server, and deletes the lines of deleted devices.
    pub(super) async fn run(&self, stop: CancellationToken) {
        let Some(mut gone) = self.to_purge.lock().take() else {
            return;
        };
        let mut lagged = self.bus.lagged();
        let mut reported = String::new();
        let work = async {
            loop {
                if !self.nats.is_connected() {
                    sleep(AGAIN / 4).await;
                    continue;
                }
                if let Err(error) = self.context.create_or_update_stream(self.config()).await {
                    let error = error.to_string();
                    if error != reported {
                        tracing::error!("failed to open the stream of log lines: {error}");
                        reported = error;
                    }
                    sleep(AGAIN).await;
                    continue;
                }
                reported.clear();
                tokio::select! {
                    () = self.missing.notified() => sleep(AGAIN / 4).await,
                    _ = lagged.changed() => {}
                    Some(device) = gone.recv() => self.purge(device).await,
                }
            }
        };
        stop.run_until_cancelled(work).await;
    }

    async fn purge(&self, device: i64) {
        let subject = self.nats.subjects().lines(device);
        let stream = self.nats.subjects().line_stream();
        let purged = match self.context.get_stream_no_info(&stream).await {
            Ok(stream) => stream
                .purge()
                .filter(subject)
                .await
                .map_err(|error| error.to_string())
                .map(drop),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = purged {
            tracing::warn!(
                device,
                "log lines of a deleted device stay until they are too old: {error}"
            );
        }
    }
}
