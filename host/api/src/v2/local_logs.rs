//! `GET /v2/local/logs`: one JSON object per line, for as long as the reader stays (docs/spec/device.md#local-logs).

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::IntoResponse;
use bytes::Bytes;
use device_types::LogEvent;
use futures::StreamExt;
use http::header::{CONTENT_TYPE, HeaderValue};

use crate::answer::Failure;
use crate::state::Api;

const NDJSON: HeaderValue = HeaderValue::from_static("application/x-ndjson; charset=utf-8");

/// The maximum number of simultaneous readers. Each holds a connection and a buffer for as long as it likes, and some
/// connections must be left for others.
pub(crate) const MAX_READERS: usize = 64;

/// Streams lines until the reader leaves or the API stops.
pub(crate) async fn logs(State(api): State<Api>) -> Result<impl IntoResponse, Failure> {
    let Ok(reader) = api.log_readers.clone().try_acquire_owned() else {
        return Err(Failure::unavailable(format!(
            "{MAX_READERS} clients are already reading the log"
        )));
    };
    // The first line is sent at once, so that a client does not wait for a silent service.
    let greeting = Arc::new(LogEvent::system("Streaming logs", None));
    let lines = futures::stream::iter([greeting])
        .chain(api.device.logs())
        .map(move |event| {
            let _counted_while_reading = &reader;
            Ok::<_, Infallible>(line(&event))
        })
        .take_until(api.stopping.clone().cancelled_owned());
    Ok(([(CONTENT_TYPE, NDJSON)], Body::from_stream(lines)))
}

fn line(event: &LogEvent) -> Bytes {
    // Strings, numbers and flags: writing them cannot fail.
    let mut json = serde_json::to_vec(event).unwrap_or_default();
    json.push(b'\n');
    json.into()
}
