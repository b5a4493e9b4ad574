//! A container's output as it is printed, across restarts of the container.
//!
//! The engine ends a log stream when its container stops. Ours then waits for the container to
//! start again, and continues after the last line that it returned.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::stream::{self, BoxStream, StreamExt};
use http::Method;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use jiff::Timestamp;
use model::ContainerId;

use super::connect::{Connection, refusal};
use super::log_lines::{Framing, LineSplitter};
use super::{Docker, events};
use crate::{EngineError, LogLine, LogsFrom};

pub(super) async fn follow(
    docker: &Docker,
    id: &ContainerId,
    from: LogsFrom,
) -> Result<BoxStream<'static, Result<LogLine, EngineError>>, EngineError> {
    let tty = docker
        .inspect(id)
        .await?
        .config
        .and_then(|config| config.tty);
    let mut follower = Follower {
        connection: docker.connection.clone(),
        id: id.clone(),
        framing: if tty == Some(true) {
            Framing::Raw
        } else {
            Framing::Multiplexed
        },
        since: match from {
            LogsFrom::Start => None,
            LogsFrom::Since(since) => Some(seconds(since)),
        },
        attached: None,
        starts: None,
        ready: VecDeque::new(),
        over: false,
    };
    follower.attach().await?;
    Ok(stream::unfold(follower, |mut follower| async {
        let line = follower.next().await?;
        if line.is_err() {
            follower.over = true;
        }
        Some((line, follower))
    })
    .boxed())
}

struct Follower {
    connection: Arc<Connection>,
    id: ContainerId,
    framing: Framing,
    /// Where to continue: only lines from this time on are requested.
    since: Option<String>,
    attached: Option<(Incoming, LineSplitter)>,
    /// Events of the container's starts and removal since before the last attachment, if that
    /// stream is open.
    starts: Option<BoxStream<'static, events::Message>>,
    ready: VecDeque<LogLine>,
    over: bool,
}

impl Follower {
    async fn next(&mut self) -> Option<Result<LogLine, EngineError>> {
        loop {
            if let Some(line) = self.ready.pop_front() {
                return Some(Ok(line));
            }
            if self.over {
                return None;
            }
            if self.attached.is_some() {
                self.read().await;
            } else if let Err(error) = self.attach_again().await {
                return Some(Err(error));
            }
        }
    }

    /// Reads the next bytes of the open stream.
    async fn read(&mut self) {
        let Some((body, lines)) = &mut self.attached else {
            return;
        };
        let frame = body.frame().await;
        let ready = &mut self.ready;
        match frame {
            Some(Ok(frame)) => {
                if let Some(data) = frame.data_ref() {
                    lines.feed(data, &mut |line| ready.push_back(line));
                }
            }
            // The reason for the end does not matter: the next request will show it.
            Some(Err(_)) | None => {
                lines.finish(&mut |line| ready.push_back(line));
                if let Some(last) = lines.last {
                    // A line with a future timestamp was written before the clock was set back.
                    self.since = Some(just_after(last.min(Timestamp::now())));
                }
                self.attached = None;
            }
        }
    }

    /// Attaches after the stream's end. The first time, it attaches at once, to read what was
    /// printed by a run that has ended already; from then on it waits for a start.
    async fn attach_again(&mut self) -> Result<(), EngineError> {
        let Some(starts) = &mut self.starts else {
            self.starts = Some(events::follow_container(&self.connection, &self.id).await?);
            return self.attach().await;
        };
        match starts.next().await {
            Some(message) if message.action == "destroy" => {
                self.over = true;
                Ok(())
            }
            Some(_) => self.attach().await,
            None => {
                self.starts = None;
                // Fails if the engine itself is gone.
                self.connection.info().await.map(|_| ())
            }
        }
    }

    async fn attach(&mut self) -> Result<(), EngineError> {
        let since = self.since.as_deref().unwrap_or("0");
        let path = format!(
            "/containers/{}/logs?follow=1&stdout=1&stderr=1&timestamps=1&since={since}",
            self.id
        );
        let version = self.connection.client().await?.version;
        match self
            .connection
            .send(version, Method::GET, &path, None)
            .await
        {
            Ok(response) => {
                self.attached = Some((response.into_body(), LineSplitter::new(self.framing)));
                Ok(())
            }
            Err(error) if matches!(refusal(&error), Some((404 | 409, _))) => {
                self.over = true;
                Ok(())
            }
            Err(error) => {
                let action = format!("read the log of `{}`", self.id);
                Err(self.connection.failed(action, error))
            }
        }
    }
}

/// Returns the seconds since the epoch in the engine's format, from milliseconds.
fn seconds(milliseconds: i64) -> String {
    let milliseconds = milliseconds.max(0);
    format!("{}.{:03}", milliseconds / 1000, milliseconds % 1000)
}

/// Returns the first point in time that a different line can have.
fn just_after(last: Timestamp) -> String {
    let nanoseconds = last.as_nanosecond() + 1;
    format!(
        "{}.{:09}",
        nanoseconds / 1_000_000_000,
        nanoseconds % 1_000_000_000
    )
}
