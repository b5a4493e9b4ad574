//! Lines of the stream: future lines and stored ones.

use std::collections::VecDeque;

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use async_nats::{Message, Subscriber};
use axum::body::Bytes;
use futures::{FutureExt as _, StreamExt as _};
use tokio::sync::broadcast::{Sender, channel};
use tokio::time::timeout;

use super::{LONGEST, LineSenders, READ, Stream, StreamError};
use crate::logs::line::LogLine;
use crate::logs::live::{BEHIND, LineSubscription, Lines};
use crate::logs::span::Span;

/// Lines that are read in one batch.
const AT_ONCE: usize = 250;

impl Stream {
    /// Follows lines from now on.
    pub(in crate::logs) async fn follow(
        &self,
        device: i64,
    ) -> Result<LineSubscription, StreamError> {
        if !self.nats.is_connected() {
            return Err(StreamError::Away);
        }
        let mut followed = self.followed.lock().await;
        if let Some(sender) = followed.get(&device) {
            return Ok(LineSubscription::new(sender));
        }
        let subject = self.nats.subjects().lines(device);
        let messages = self.nats.client().subscribe(subject).await;
        let messages = messages.map_err(|error| StreamError::Refused(error.to_string()))?;
        let sender = channel(BEHIND).0;
        let follower = LineSubscription::new(&sender);
        followed.insert(device, sender.clone());
        tokio::spawn(pass_on(self.followed.clone(), device, messages, sender));
        Ok(follower)
    }

    /// Reads stored lines, the oldest first.
    pub(in crate::logs) async fn read(&self, span: Span) -> Result<Vec<LogLine>, StreamError> {
        if !self.nats.is_connected() {
            return Err(StreamError::Away);
        }
        match timeout(READ, self.read_all(span)).await {
            Ok(lines) => lines,
            Err(_) => Err(StreamError::TooSlow),
        }
    }

    async fn read_all(&self, span: Span) -> Result<Vec<LogLine>, StreamError> {
        let refused = |error: &dyn std::fmt::Display| StreamError::Refused(error.to_string());
        let since = jiff::Timestamp::from_millisecond(span.since.max(0))
            .map_err(|error| refused(&error))?
            .to_string();
        let start_time =
            async_nats::datetime::parse_rfc3339(&since).map_err(|error| refused(&error))?;
        let consumer = pull::Config {
            filter_subject: self.nats.subjects().lines(span.device),
            deliver_policy: DeliverPolicy::ByStartTime { start_time },
            ack_policy: AckPolicy::None,
            inactive_threshold: READ,
            memory_storage: true,
            num_replicas: 1,
            ..pull::Config::default()
        };
        let stream = self.nats.subjects().line_stream();
        let consumer = self
            .context
            .create_consumer_on_stream(consumer, &stream)
            .await
            .map_err(|error| refused(&error))?;
        let info = consumer.cached_info();
        let name = info.name.clone();
        let pending = usize::try_from(info.num_pending).unwrap_or(usize::MAX);
        let mut lines = VecDeque::new();
        let mut read = 0;
        while read < pending {
            let some = (pending - read).min(AT_ONCE);
            let batch = consumer.fetch().max_messages(some).messages().await;
            let mut batch = batch.map_err(|error| refused(&error))?;
            let before = read;
            while let Some(message) = batch.next().await {
                let message = message.map_err(|error| refused(&error))?;
                read += 1;
                let Some(line) = line(&message.payload) else {
                    continue;
                };
                if lines.len() >= span.count {
                    lines.pop_front();
                }
                lines.push_back(line);
            }
            if read == before {
                // The oldest ones were deleted in the meantime.
                break;
            }
        }
        let _ = self
            .context
            .delete_consumer_from_stream(&name, &stream)
            .await;
        Ok(lines.into())
    }
}

/// Parses a received line; anything else is skipped.
fn line(payload: &Bytes) -> Option<LogLine> {
    if i32::try_from(payload.len()).is_ok_and(|length| length <= LONGEST) {
        serde_json::from_slice::<LogLine>(payload)
            .ok()
            .map(LogLine::bounded)
    } else {
        None
    }
}

/// Passes lines on to all followers of a device here, until there are none.
async fn pass_on(
    followed: LineSenders,
    device: i64,
    mut messages: Subscriber,
    sender: Sender<Lines>,
) {
    let read = |message: Message| line(&message.payload);
    loop {
        tokio::select! {
            message = messages.next() => {
                let Some(message) = message else { break };
                let mut lines = Vec::from_iter(read(message));
                while lines.len() < AT_ONCE
                    && let Some(Some(more)) = messages.next().now_or_never()
                {
                    lines.extend(read(more));
                }
                if !lines.is_empty() {
                    let _ = sender.send(lines.into());
                }
            }
            () = sender.closed() => {
                let mut followed = followed.lock().await;
                // Somebody may have started to follow in the meantime.
                if sender.receiver_count() == 0 {
                    followed.remove(&device);
                    return;
                }
            }
        }
    }
    followed.lock().await.remove(&device);
}
