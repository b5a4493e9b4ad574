//! `POST /device/v2/:uuid/log-stream`: lines as they are written, in one request that stays open.

mod lines;
pub(super) mod open;
mod stored_lines;

use std::net::IpAddr;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use cloud_core::answer::{Answer, Refusal};
use cloud_core::charge::address;
use cloud_core::clock::now;
use cloud_core::lease::{Lease, Need};
use cloud_core::logs::line::{LogLine, ParsedLine};
use cloud_core::logs::span::{KEPT, Span};
use http::{HeaderMap, header};
use http_body_util::BodyExt as _;
use tokio::time::{Instant, sleep_until};

use super::acknowledgement;
use super::ingest::{admitted, keep, unavailable};
use super::line_limits::LineShare;
use crate::connections::Connection;
use crate::state::{Server, ServerState};
use lines::Decoder;
use stored_lines::StoredLines;

/// Number of lines that are stored together.
const TOGETHER: usize = 50;
/// How long a line waits for others.
const WAIT: Duration = Duration::from_millis(500);
/// How long a request may contain lines that are already stored: a device sends them first.
const AGAIN: Duration = Duration::from_secs(60);
/// The maximum age of lines that a device sends again, in milliseconds.
const LATELY: i64 = 3600 * 1000;
/// The content type of such a body.
const NDJSON: &str = "application/x-ndjson";

/// `POST /device/v2/:uuid/log-stream`. A device treats any answer as the end, so there is none while it sends.
pub(crate) async fn stream(
    State(server): State<ServerState>,
    Path(uuid): Path<String>,
    request: Request,
) -> Answer {
    let cloud = &server.cloud;
    let (parts, body) = request.into_parts();
    let (device, identity) = admitted(&server, &uuid, &parts).await?;
    let decoder = decoder(&parts.headers)?;
    if let Some(connection) = parts.extensions.get::<Connection>() {
        connection.is_of_a_device();
        connection.has_long_body();
    }
    let limits = &server.devices.logs;
    let open = limits.uploads.open(device.id);
    let upload = Upload {
        server: &server,
        device: device.id,
        share: LineShare::load(cloud, &limits.lines, device.id).await,
        address: address(&parts.extensions),
        waiting: Vec::new(),
        suppressed: 0,
        repeats: Repeats::Maybe,
        begun: Instant::now(),
        lease: Lease::new(cloud, &identity, Need::WriteLog(device)),
    };
    tokio::select! {
        answer = upload.run(body, decoder) => answer,
        // A device that lost its connection does not send on the old one. Lines that are not stored are sent again.
        () = open.replaced() => Err(Refusal::Conflict(
            "the device has opened another stream of logs; this one ends".to_owned(),
        )),
    }
}

fn decoder(headers: &HeaderMap) -> Result<Decoder, Refusal> {
    let text = |name| {
        headers
            .get(name)
            .map(|value| value.to_str().unwrap_or_default())
    };
    if text(header::CONTENT_TYPE) != Some(NDJSON) {
        return Err(Refusal::ContentType("Content-Type: application/x-ndjson"));
    }
    match text(header::CONTENT_ENCODING) {
        None | Some("" | "identity") => Ok(Decoder::plain()),
        Some("gzip") => Ok(Decoder::gzip()),
        Some(_) => Err(Refusal::ContentType("gzip, or not encoded")),
    }
}

/// A stream of lines.
struct Upload<'a> {
    server: &'a Server,
    device: i64,
    share: LineShare,
    address: IpAddr,
    waiting: Vec<LogLine>,
    /// The number of lines beyond the limits.
    suppressed: u64,
    repeats: Repeats,
    begun: Instant,
    /// The right of the device, checked for as long as the request is open.
    lease: Lease,
}

/// Whether a request may contain lines that are already stored, because the device does not know that they are.
enum Repeats {
    /// Nothing has arrived so far.
    Maybe,
    /// The lines may include some of these.
    Some(StoredLines),
    /// All further lines are new.
    Nothing,
}

impl Upload<'_> {
    async fn run(mut self, mut body: Body, mut decoder: Decoder) -> Answer {
        let mut due: Option<Instant> = None;
        loop {
            let flush = async {
                match due {
                    Some(due) => sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                // Lines that are due are stored first, however much more the device sends.
                biased;
                () = self.server.cloud.stop.cancelled() => {
                    self.flush().await?;
                    // Not a success, so lines in transit are sent again, to the next replica.
                    return Err(unavailable());
                }
                () = self.lease.wait_for_end() => {
                    // Lines sent before are stored.
                    self.flush().await?;
                    return Err(Refusal::Unauthorized);
                }
                () = flush => {
                    self.flush().await?;
                    due = None;
                }
                frame = body.frame() => match frame {
                    None => {
                        let last = decoder.end().map_err(Refusal::Wrong)?;
                        self.take(last.iter())?;
                        break;
                    }
                    // The device disconnected; lines sent before are stored.
                    Some(Err(_)) => break,
                    Some(Ok(frame)) => {
                        let Ok(mut data) = frame.into_data() else { continue };
                        while !data.is_empty() {
                            let lines = decoder.decode(&mut data).map_err(Refusal::Wrong);
                            let result = lines.and_then(|lines| self.take(lines.iter()));
                            if self.waiting.len() >= TOGETHER || result.is_err() {
                                self.flush().await?;
                            }
                            result?;
                        }
                        let any = !self.waiting.is_empty() || self.suppressed > 0;
                        due = if any { due.or_else(|| Some(Instant::now() + WAIT)) } else { None };
                    }
                }
            }
        }
        self.flush().await?;
        Ok(acknowledgement())
    }

    /// Parses lines of JSON; blank ones keep the connection open.
    fn take<'b>(&mut self, lines: impl Iterator<Item = &'b Vec<u8>>) -> Result<(), Refusal> {
        let now = now();
        for text in lines {
            if text.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let value = serde_json::from_slice(text)
                .map_err(|error| Refusal::Wrong(format!("a line is not JSON: {error}")))?;
            let ParsedLine::Line(line) = ParsedLine::read(&value, now) else {
                continue;
            };
            if self.share.takes() {
                self.waiting.push(line)
            } else {
                self.suppressed += 1
            }
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Refusal> {
        let limits = &self.server.devices.logs.lines;
        self.share.refresh(&self.server.cloud, limits).await;
        let mut lines = std::mem::take(&mut self.waiting);
        if self.suppressed > 0 {
            let warning = format!(
                "Warning: Suppressed {} message(s) due to rate limiting",
                self.suppressed
            );
            lines.push(LogLine::system(warning, now()));
            self.suppressed = 0;
        }
        self.leave_out_repeated(&mut lines).await;
        keep(self.server, self.device, lines, self.address).await
    }

    /// Returns this many of the recently stored lines, the oldest first; none if they cannot be read, because a line
    /// that is stored twice is better than one that is refused.
    async fn newest(&self, count: usize) -> Vec<LogLine> {
        let span = Span {
            device: self.device,
            count,
            since: now() - LATELY,
        };
        let cloud = &self.server.cloud;
        let lines = cloud.logs.read(&cloud.database, span).await;
        lines.unwrap_or_default()
    }

    /// Removes lines that are already stored from `lines`.
    async fn leave_out_repeated(&mut self, lines: &mut Vec<LogLine>) {
        let Some(oldest) = lines.iter().map(|line| line.timestamp).min() else {
            return;
        };
        if self.begun.elapsed() > AGAIN {
            self.repeats = Repeats::Nothing;
        }
        if matches!(self.repeats, Repeats::Maybe) {
            // Most requests begin after the last stored line, so only that one is read first.
            let last = self.newest(1).await;
            let is_new = last.iter().all(|last| last.timestamp < oldest);
            self.repeats = if is_new {
                Repeats::Nothing
            } else {
                Repeats::Some(StoredLines::from_lines(&self.newest(KEPT).await))
            };
        }
        if let Repeats::Some(stored) = &mut self.repeats
            && !stored.leave_out(lines)
        {
            self.repeats = Repeats::Nothing;
        }
    }
}
