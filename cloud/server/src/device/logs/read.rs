//! `GET /device/v2/:uuid/logs`: stored lines, and new ones as they are written.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State};
use axum::response::IntoResponse as _;
use cloud_core::answer::{Answer, Refusal, json};
use cloud_core::clock::now;
use cloud_core::cloud::SharedCloud;
use cloud_core::lease::{Lease, Need};
use cloud_core::logs::line::LogLine;
use cloud_core::logs::span::{KEPT, KEPT_FOR, Span};
use cloud_core::logs::tail::LogTail;
use futures::{StreamExt as _, stream};
use http::request::Parts;
use http::{StatusCode, header};
use resources::{Method, Role};

use crate::device::parameter;

/// How far back a follower reads by default, in milliseconds.
const DAY: i64 = 24 * 3600 * 1000;
/// `GET /device/v2/:uuid/logs?stream=1&count=N&start=T`
pub(crate) async fn read(
    State(cloud): State<SharedCloud>,
    Path(uuid): Path<String>,
    request: Request,
) -> Answer {
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
    let live = LogTail::load(&cloud, query.span(right.id())).await?;
    let body = stream::unfold(live, |mut live| async move {
        let next = live.next().await?;
        Some((Ok::<_, Infallible>(text(&next)), live))
    });
    let body = body.take_until(async move { lease.wait_for_end().await });
    Ok((headers, Body::from_stream(body)).into_response())
}

struct LogQuery {
    follow: bool,
    count: usize,
    /// Milliseconds.
    start: i64,
}

impl LogQuery {
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
    // Without a zone, or without a time of day.
    let time = text.parse::<jiff::civil::DateTime>().ok()?;
    let time = time.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    Some(time.timestamp().as_millisecond())
}

/// Returns one line of JSON for each; a blank line if there are none, which shows a follower that the answer has begun,
/// or continues.
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
