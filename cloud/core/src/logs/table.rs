//! Lines in a table of the database, which keeps the latest of each device.
//!
//! All waiting lines, of whatever devices, are written in one transaction and then passed on.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use data::{DataError, Database, SystemPurpose};
use parking_lot::Mutex;
use sea_query::{Alias, Expr, Query};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::line::LogLine;
use super::live::LiveLines;
use super::span::{AppendError, KEPT, KEPT_FOR, Span};
use crate::clock::now;

/// Maximum number of waiting groups of lines; beyond it, senders wait.
const WAITING: usize = 256;
/// Approximate number of lines in one transaction.
const AT_ONCE: usize = 2000;
/// Lines that a device may have above [`KEPT`] before the oldest are deleted.
const SLACK: usize = 250;
/// Interval between checks for lines that are too old.
const LOOK: Duration = Duration::from_secs(3600);

/// Interval between removals of devices without followers.
const TIDY: Duration = Duration::from_secs(60);

/// Lines of the table: the queue of the writer, and live lines.
#[derive(Default)]
pub struct LogTable {
    pub(super) queue: Queue,
    pub(super) live: LiveLines,
}

/// Lines that wait for the writer.
pub(super) struct Queue {
    sender: mpsc::Sender<Group>,
    receiver: Mutex<Option<mpsc::Receiver<Group>>>,
}

impl Default for Queue {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel(WAITING);
        Queue {
            sender,
            receiver: Mutex::new(Some(receiver)),
        }
    }
}

/// Lines of one device that were sent together.
struct Group {
    device: i64,
    lines: Vec<LogLine>,
    result: oneshot::Sender<Result<(), AppendError>>,
}

impl Queue {
    /// Stores lines of a device. When it returns, they are stored and have been sent to the followers of the device.
    ///
    /// # Errors
    /// [`AppendError`]
    pub(super) async fn keep(&self, device: i64, lines: Vec<LogLine>) -> Result<(), AppendError> {
        let (result, answer) = oneshot::channel();
        let group = Group {
            device,
            lines,
            result,
        };
        self.sender
            .send(group)
            .await
            .map_err(|_| AppendError::Unavailable)?;
        answer.await.unwrap_or(Err(AppendError::Unavailable))
    }
}

/// Writes waiting lines, for as long as the program runs.
pub(super) async fn writing(database: &Database, table: &LogTable) {
    let Some(mut receiver) = table.queue.receiver.lock().take() else {
        return;
    };
    // Lines of a device since its oldest ones were last deleted.
    let mut since: HashMap<i64, usize> = HashMap::new();
    while let Some(first) = receiver.recv().await {
        let mut count = first.lines.len();
        let mut groups = vec![first];
        while count < AT_ONCE
            && let Ok(more) = receiver.try_recv()
        {
            count += more.lines.len();
            groups.push(more);
        }
        match write(database, &mut groups).await {
            Ok(()) => kept(database, table, groups, &mut since).await,
            // A deleted device must not cause other devices' lines to be lost.
            Err(_) => {
                for group in groups {
                    let mut alone = vec![group];
                    match write(database, &mut alone).await {
                        Ok(()) => kept(database, table, alone, &mut since).await,
                        Err(error) => not_kept(alone, &error),
                    }
                }
            }
        }
    }
}

async fn write(database: &Database, groups: &mut [Group]) -> Result<(), DataError> {
    let mut transaction = database.begin().await?;
    for group in &mut *groups {
        for lines in group.lines.chunks_mut(500) {
            let mut insert = Query::insert()
                .into_table(Alias::new("device_log"))
                .columns(
                    [
                        "device",
                        "created_at",
                        "timestamp",
                        "message",
                        "is_system",
                        "is_std_err",
                        "service_id",
                    ]
                    .map(Alias::new),
                )
                .returning_col(Alias::new("id"))
                .take();
            for line in &*lines {
                insert.values_panic([
                    group.device.into(),
                    line.created_at.into(),
                    line.timestamp.into(),
                    line.message.as_str().into(),
                    line.is_system.into(),
                    line.is_std_err.into(),
                    Expr::val(sea_query::Value::BigInt(line.service)),
                ]);
            }
            let mut ids = transaction
                .ids(&SystemPurpose::Logs.statement(insert))
                .await?;
            // Ids are assigned in the order of the lines, but may be returned in another order.
            ids.sort_unstable();
            for (line, id) in lines.iter_mut().zip(ids) {
                line.id = id;
            }
        }
    }
    transaction.commit().await
}

async fn kept(
    database: &Database,
    table: &LogTable,
    groups: Vec<Group>,
    since: &mut HashMap<i64, usize>,
) {
    for group in groups {
        let count = group.lines.len();
        let lines: Arc<[LogLine]> = group.lines.into();
        table.live.publish(group.device, &lines);
        let _ = group.result.send(Ok(()));
        // After a start, the first lines may follow any number of stored ones.
        let written = since.entry(group.device).or_insert(SLACK);
        *written += count;
        if *written >= SLACK {
            *written = 0;
            if let Err(error) = trim(database, group.device).await {
                tracing::warn!("failed to delete old log lines: {error}");
            }
        }
    }
    if since.len() > 200_000 {
        since.clear();
    }
}

fn not_kept(groups: Vec<Group>, error: &DataError) {
    let why = match error {
        DataError::ForeignKey | DataError::Dangling { .. } => AppendError::Gone,
        error => {
            tracing::error!("log lines cannot be kept: {error}");
            AppendError::Unavailable
        }
    };
    for group in groups {
        let _ = group.result.send(Err(why));
    }
}

/// Deletes the oldest lines of a device, above [`KEPT`].
async fn trim(database: &Database, device: i64) -> Result<(), DataError> {
    let most = i64::try_from(KEPT).unwrap_or(i64::MAX);
    let delete = SystemPurpose::Logs
        .sql(
            "DELETE FROM device_log WHERE device = ? AND id <= \
         (SELECT id FROM device_log WHERE device = ? ORDER BY id DESC LIMIT 1 OFFSET ?)",
        )
        .with(device)
        .with(device)
        .with(most);
    database.execute(&delete).await?;
    Ok(())
}

/// Deletes lines that are too old, and removes devices without followers, until `stop`.
pub(super) async fn tidying(database: &Database, table: &LogTable, stop: &CancellationToken) {
    let mut old = interval(LOOK);
    old.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut idle = interval(TIDY);
    idle.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = idle.tick() => table.live.tidy(),
            _ = old.tick() => {
                let delete = SystemPurpose::Logs.sql("DELETE FROM device_log WHERE created_at < ?").with(now() - KEPT_FOR);
                if let Err(error) = database.execute(&delete).await {
                    tracing::warn!("failed to delete old log lines: {error}");
                }
            }
        }
    }
}

/// Reads the latest lines of a span, the oldest first.
pub(super) async fn read(database: &Database, span: Span) -> Result<Vec<LogLine>, DataError> {
    let select = SystemPurpose::Logs.sql(
        "SELECT id, created_at, timestamp, message, is_system, is_std_err, service_id FROM device_log \
         WHERE device = ? AND created_at >= ? ORDER BY id DESC LIMIT ?",
    )
    .with(span.device)
    .with(span.since)
    .with(i64::try_from(span.count).unwrap_or(i64::MAX));
    let mut lines = Vec::new();
    for row in database.rows(&select).await? {
        lines.push(LogLine {
            id: row.id(0)?,
            created_at: row.id(1)?,
            timestamp: row.id(2)?,
            message: row.some_text(3)?,
            is_system: row.flag(4)?.unwrap_or_default(),
            is_std_err: row.flag(5)?.unwrap_or_default(),
            service: row.number(6)?,
        });
    }
    lines.reverse();
    Ok(lines)
}
