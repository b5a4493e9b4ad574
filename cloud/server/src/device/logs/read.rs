//! `GET /device/v2/:uuid/logs`: what was written, and what is being written.

use std::collections::{HashSet, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use data::RowRight;
use futures::{StreamExt as _, stream};
use http::request::Parts;
use http::{StatusCode, header};
use resources::{Method, Role};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::history::{HistoryError, Span};
use super::line::LogLine;
use super::live::{LineEvent, LineSubscription};
use super::{KEPT, KEPT_FOR};
use crate::answer::{Refusal, json};
use crate::clock::now;
use crate::cloud::{Cloud, SharedCloud};
use crate::device::parameter;
use crate::lease::{Lease, Need};

/// How far back one who follows looks, unless told otherwise, in milliseconds.
const DAY: i64 = 24 * 3600 * 1000;
/// A connection without lines gets a blank one this often.
const ALIVE: Duration = Duration::from_secs(58);
/// What clocks of replicas and of the server between them may differ by, in milliseconds.
const SKEW: i64 = 60_000;
/// How often lines that were missed are asked for, and what is between.
const TRIES: usize = 10;
const AGAIN: Duration = Duration::from_secs(1);

/// `GET /device/v2/:uuid/logs?stream=1&count=N&start=T`
pub(crate) async fn read(
    State(cloud): State<SharedCloud>,
    Path(uuid): Path<String>,
    request: Request,
) -> Result<Response, Refusal> {
    let (parts, _) = request.into_parts();
    let identity = cloud.auth.admit(&parts).await?;
    if !matches!(identity.role(), Role::User | Role::UserKey) {
        return Err(Refusal::Unauthorized);
    }
    let uuid_text: String = uuid.chars().take(64).collect();
    let missing = || Refusal::Missing(format!("No device with uuid {uuid_text}"));
    let device = cloud.device(&uuid).await?.ok_or_else(missing)?;
    let right = cloud.right_on_device(&identity, device, Method::Read);
    let right = right.await?.ok_or_else(missing)?;
    let query = LogQuery::read(&parts)?;
    if !query.follow {
        let lines = cloud
            .logs
            .read(&cloud.database, query.span(right.id()))
            .await?;
        let lines: Vec<_> = lines.iter().map(LogLine::json).collect();
        return Ok(json(
            StatusCode::OK,
            serde_json::Value::Array(lines).to_string(),
        ));
    }
    let headers = [
        (header::CONTENT_TYPE, "application/x-ndjson"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    let mut lease = Lease::new(&cloud, &identity, Need::Read(device.id));
    let live = LogTail::of(&cloud, &right, &query).await?;
    let body = stream::unfold(live, |mut live| async move {
        let next = live.next().await?;
        Some((Ok::<_, Infallible>(text(&next)), live))
    });
    let body = body.take_until(async move { lease.over().await });
    Ok((headers, Body::from_stream(body)).into_response())
}

/// The latest lines of a device, the oldest first, for whoever has the right to read it.
///
/// # Errors
/// Where they cannot be read.
pub(crate) async fn latest(cloud: &Cloud, device: &RowRight) -> Result<Vec<LogLine>, HistoryError> {
    let span = LogQuery::latest().span(device.id());
    cloud.logs.read(&cloud.database, span).await
}

/// The same, and what comes after them.
///
/// # Errors
/// As [`latest`].
pub(crate) async fn followed(
    cloud: &SharedCloud,
    device: &RowRight,
) -> Result<LogTail, HistoryError> {
    LogTail::of(cloud, device, &LogQuery::latest()).await
}

struct LogQuery {
    follow: bool,
    count: usize,
    /// Milliseconds.
    start: i64,
}

impl LogQuery {
    /// Everything that is kept.
    fn latest() -> Self {
        LogQuery {
            follow: true,
            count: KEPT,
            start: now() - KEPT_FOR,
        }
    }

    fn read(parts: &Parts) -> Result<Self, Refusal> {
        let follow = parameter(parts, "stream");
        let follow = matches!(follow.as_deref(), Some("1" | "true"));
        let count = match parameter(parts, "count").as_deref() {
            None | Some("") if follow => 0,
            None | Some("" | "all") => KEPT,
            Some(number) => number
                .parse::<usize>()
                .map_err(|_| Refusal::Wrong("`count` must be a whole number or `all`".to_owned()))?
                .min(KEPT),
        };
        let now = now();
        let back = if follow { DAY } else { KEPT_FOR };
        let start = match parameter(parts, "start") {
            None => now - back,
            Some(start) => moment(&start)
                .ok_or_else(|| {
                    Refusal::Wrong(
                        "`start` must be milliseconds, or a time such as `2026-11-21T10:00:00Z`"
                            .to_owned(),
                    )
                })?
                .max(now - KEPT_FOR),
        };
        Ok(LogQuery {
            follow,
            count,
            start,
        })
    }

    fn span(&self, device: i64) -> Span {
        Span {
            device,
            count: self.count,
            since: self.start,
        }
    }
}

fn moment(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Ok(milliseconds) = text.parse::<i64>() {
        return Some(milliseconds);
    }
    if let Ok(time) = text.parse::<jiff::Timestamp>() {
        return Some(time.as_millisecond());
    }
    // Without a zone, or without a time.
    let time = text.parse::<jiff::civil::DateTime>().ok()?;
    let time = time.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    Some(time.timestamp().as_millisecond())
}

/// Lines as they come, after those that were there.
pub(crate) struct LogTail {
    cloud: Arc<Cloud>,
    device: i64,
    recent: RecentLines,
    first: Option<Vec<LogLine>>,
    followed: LineSubscription,
    /// Changes where lines may have come that were not passed on.
    lagged: watch::Receiver<u64>,
    /// When nothing was missed last, in milliseconds.
    seen: i64,
}

impl LogTail {
    async fn of(
        cloud: &SharedCloud,
        right: &RowRight,
        query: &LogQuery,
    ) -> Result<Self, HistoryError> {
        let device = right.id();
        let history = &cloud.logs;
        // What is there before is not taken for missed.
        let before = if cloud.bus.has_others() {
            let span = Span {
                device,
                count: KEPT,
                since: now() - SKEW,
            };
            history.read(&cloud.database, span).await?
        } else {
            Vec::new()
        };
        // Followed first and read then: a line is in one of both at least.
        let lagged = cloud.bus.lagged();
        let followed = history.follow(device).await?;
        let lines = history.read(&cloud.database, query.span(device)).await?;
        Ok(LogTail {
            cloud: cloud.clone(),
            device,
            recent: RecentLines::of(before.iter().chain(&lines)),
            first: Some(lines),
            followed,
            lagged,
            seen: now(),
        })
    }

    /// What comes next: first what was there, then lines as they are written, and none of them for a sign of life
    /// after a while; nothing when the cloud ends.
    pub(crate) async fn next(&mut self) -> Option<Vec<LogLine>> {
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
            self.seen = now();
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

    /// Lines that were kept and not passed on.
    async fn caught_up(&mut self) -> Vec<LogLine> {
        let span = Span {
            device: self.device,
            count: KEPT,
            since: self.seen - SKEW,
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

/// The latest lines that were sent, which may come once more.
#[derive(Default)]
struct RecentLines {
    ids: HashSet<i64>,
    order: VecDeque<i64>,
}

impl RecentLines {
    fn of<'a>(lines: impl Iterator<Item = &'a LogLine>) -> Self {
        let mut recent = RecentLines::default();
        for line in lines {
            recent.is_new(line.id);
        }
        recent
    }

    /// Whether a line was not sent yet; it is now.
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

/// A line of JSON for each; a blank one where there is none, so that who follows knows that the answer began, or
/// goes on.
fn text(lines: &[LogLine]) -> Bytes {
    let mut text = String::new();
    if lines.is_empty() {
        text.push('\n');
    }
    for line in lines {
        text.push_str(&line.json().to_string());
        text.push('\n');
    }
    Bytes::from(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_milliseconds_or_a_time() {
        for (text, expected) in [
            ("1700000000000", Some(1_700_000_000_000)),
            ("2023-11-14T22:13:20Z", Some(1_700_000_000_000)),
            ("2023-11-14T22:13:20.000+00:00", Some(1_700_000_000_000)),
            ("2023-11-14T22:13:20", Some(1_700_000_000_000)),
            ("2023-11-14", Some(1_699_920_000_000)),
            ("yesterday", None),
            ("", None),
        ] {
            assert_eq!(moment(text), expected, "{text}");
        }
    }
}
