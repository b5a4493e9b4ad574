//! Lines in a stream of the server between replicas (NATS JetStream), which keeps the latest of each device.
//!
//! ```text
//! keep    a message a line, on the subject of its device ──► the stream acknowledges each
//! follow  the subject, once for all who follow a device here
//! read    a consumer that lives as long as one answer
//! ```
//!
//! Followers do not read the stream, which would number lines in another way than it sends them: each line has
//! a number of its own from whoever took it, and is told once.

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
/// How long all lines of an answer may take.
const READ: Duration = Duration::from_secs(20);
/// Lines whose acknowledgement is waited for, of all devices together.
const UNDER_WAY: usize = 4096;
/// Bytes of a message: a line of 10,000 characters, each escaped.
const LONGEST: i32 = 128 << 10;
/// How long a device that is there is not looked for again.
const PRESENT: Duration = Duration::from_secs(60);
/// Devices that are remembered to be there.
const MOST_PRESENT: usize = 200_000;
/// Devices that are gone whose lines wait to be taken away; those of more go by their age.
const GONE: usize = 10_000;
/// Before the server is asked again for the stream.
const AGAIN: Duration = Duration::from_secs(1);

/// Why lines cannot be had.
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
    /// The number of the next line that is taken here.
    next: AtomicI64,
    /// The server has no such stream.
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
        // Without random numbers, lines of two replicas may look like the same one to who follows both.
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

    /// Keeps lines: answers when the server has them all.
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

    /// Whether there is (still) such a device.
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

    /// These devices are no more, and their lines go with them.
    pub(super) fn invalidate(&self, gone: &[DeviceGone]) {
        let mut present = self.present.lock();
        for device in gone {
            present.remove(&device.id);
            let _ = self.gone.try_send(device.id);
        }
    }

    /// What the server is to keep, and for how long.
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

    /// Has the server have the stream with these limits, and takes lines of devices away that are gone.
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
