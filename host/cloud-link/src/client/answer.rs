//! Reading the cloud's answers, with limits on size and time.

use std::time::Duration;

use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use reqwest::Response;
use serde_json::Value;

use super::error::{CloudError, unreachable};
use crate::payload::{self, MAX_BODY};
use crate::retry;

/// How much of a refusal's body is reported, in bytes.
const MAX_REASON: usize = 200;
/// A whole answer may take this many times the limit for one of its pieces.
const WHOLE: u32 = 5;

/// Returns the error for an answer that is not a success.
pub(super) async fn refusal(answer: Response, limit: Duration) -> CloudError {
    let (status, retry_after) = (answer.status(), retry::retry_after(answer.headers()));
    let reason = tokio::time::timeout(limit, beginning(answer)).await;
    CloudError::Status {
        status,
        retry_after,
        reason: reason.unwrap_or_default(),
    }
}

/// Returns the whole body as JSON, parsed on a thread that may block.
pub(super) async fn read(answer: Response, limit: Duration) -> Result<Value, CloudError> {
    let gzip = match answer.headers().get(CONTENT_ENCODING) {
        None => false,
        Some(name) if name.as_bytes().eq_ignore_ascii_case(b"identity") => false,
        Some(name) if name.as_bytes().eq_ignore_ascii_case(b"gzip") => true,
        Some(_) => return Err(CloudError::Shape("in the requested encoding")),
    };
    let body = collect(answer, limit).await?;
    let parsed = tokio::task::spawn_blocking(move || payload::parse(body, gzip)).await;
    match parsed {
        Ok(parsed) => Ok(parsed?),
        Err(error) => Err(CloudError::Unreachable(error.into())),
    }
}

/// Returns the whole body, if it is within the limit. The client bounds the silence between two pieces; a body that
/// trickles in is given up after a few times that limit.
pub(super) async fn collect(answer: Response, limit: Duration) -> Result<Vec<u8>, CloudError> {
    let announced = answer.headers().get(CONTENT_LENGTH);
    let announced = announced.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > MAX_BODY as u64) {
        return Err(payload::PayloadError::TooLong.into());
    }
    let (what, limit) = ("end its answer", limit * WHOLE);
    let body = tokio::time::timeout(limit, bounded(answer)).await;
    body.unwrap_or(Err(CloudError::Timeout { what, limit }))
}

async fn bounded(mut answer: Response) -> Result<Vec<u8>, CloudError> {
    let mut body = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(unreachable)? {
        if body.len() + piece.len() > MAX_BODY {
            return Err(payload::PayloadError::TooLong.into());
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// Returns the beginning of a refusal's text, on one line.
async fn beginning(mut answer: Response) -> String {
    let packed = answer.headers().get(CONTENT_ENCODING);
    let packed = packed.is_some_and(|name| name.as_bytes().eq_ignore_ascii_case(b"gzip"));
    let mut text = Vec::new();
    while text.len() < MAX_REASON
        && let Ok(Some(piece)) = answer.chunk().await
    {
        text.extend_from_slice(&piece);
    }
    if packed {
        text = payload::beginning(&text, MAX_REASON);
    }
    text.truncate(MAX_REASON);
    let text = String::from_utf8_lossy(&text);
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    plain.collect::<String>().trim().to_owned()
}
