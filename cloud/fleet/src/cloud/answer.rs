//! The contents of an answer: its bytes within a bound, an error message, and when to retry.

use std::time::{Duration, SystemTime};

use reqwest::header::RETRY_AFTER;
use reqwest::{Response, StatusCode};
use serde_json::Value;

/// Returns the bytes of an answer, or `None` if there are more than `most`.
///
/// # Errors
/// If it ends early.
pub(super) async fn bounded(mut answer: Response, most: usize) -> reqwest::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    while let Some(piece) = answer.chunk().await? {
        if bytes.len() + piece.len() > most {
            return Ok(None);
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(Some(bytes))
}

/// Returns the message in a body: a JSON string, an object's `error` or `message`, or short text.
pub(crate) fn message_in(body: &[u8]) -> Option<String> {
    let text = match serde_json::from_slice::<Value>(body) {
        Ok(Value::String(text)) => text,
        Ok(Value::Object(object)) => ["error", "Error", "message"]
            .iter()
            .find_map(|name| object.get(*name)?.as_str())
            .map(str::to_owned)?,
        Ok(_) => return None,
        Err(_) => String::from_utf8(body.to_vec()).ok()?,
    };
    let text = text.trim();
    // The HTML page of a proxy helps nobody.
    if text.is_empty() || text.starts_with('<') {
        None
    } else {
        Some(text.chars().take(1000).collect())
    }
}

/// Returns how long to wait before the request is sent again, if the cloud says so.
pub(super) fn requested_wait(answer: &Response) -> Option<Duration> {
    if !matches!(
        answer.status(),
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
    ) {
        return None;
    }
    let text = answer.headers().get(RETRY_AFTER)?.to_str().ok()?;
    waiting_time(text, SystemTime::now())
}

/// Parses a `Retry-After`: seconds, or a date.
fn waiting_time(text: &str, now: SystemTime) -> Option<Duration> {
    if let Ok(seconds) = text.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_reported_in_the_clouds_words() {
        for (body, expected) in [
            (
                &br#""\"uuid\" must be unique.""#[..],
                Some("\"uuid\" must be unique."),
            ),
            (br#"{"error":"Bad API response"}"#, Some("Bad API response")),
            (br#"{"Data":"","Error":"locked"}"#, Some("locked")),
            (b"plain words\n", Some("plain words")),
            (b"<html>x</html>", None),
            (b"", None),
            (b"[1]", None),
        ] {
            assert_eq!(message_in(body).as_deref(), expected);
        }
    }

    #[test]
    fn the_time_to_wait_is_seconds_or_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        for (text, expected) in [
            ("7", Some(7)),
            ("Sun, 06 Nov 1994 08:49:47 GMT", Some(10)),
            ("Sun, 06 Nov 1994 08:49:07 GMT", Some(0)),
            ("soon", None),
        ] {
            let wait = waiting_time(text, now).map(|wait| wait.as_secs());
            assert_eq!(wait, expected, "{text}");
        }
    }
}
