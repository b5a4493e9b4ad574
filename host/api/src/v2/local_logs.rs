//! `GET /v2/local/logs`: a JSON object a line, for as long as the reader stays (docs/spec/device.md#local-logs).

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use futures::StreamExt;
use http::StatusCode;

use crate::answer::{self, Failure};
use crate::app::Api;
use crate::call::Call;
use crate::routes::Outcome;
use device_types::LogEvent;

/// Readers at the same time. Each holds a connection and a buffer for as long as it likes, and they must
/// leave connections for everybody else.
pub(crate) const MAX_READERS: usize = 64;

/// Ends when the reader leaves or the API stops.
pub(crate) fn logs(api: &Api, _: &Call) -> Outcome {
    let Ok(reader) = api.log_readers.clone().try_acquire_owned() else {
        return Err(Failure::Refused(
            StatusCode::SERVICE_UNAVAILABLE,
            format!("{MAX_READERS} clients are already reading the log"),
        ));
    };
    // The first line comes at once, so that a client does not wait for a silent service.
    let greeting = Arc::new(LogEvent::system("Streaming logs", None));
    let lines = futures::stream::iter([greeting])
        .chain(api.device.logs())
        .map(move |event| {
            let _held_while_reading = &reader;
            Ok::<_, Infallible>(line(&event))
        })
        .take_until(api.stopping().clone().cancelled_owned());
    Ok(answer::ndjson(Body::from_stream(lines)))
}

fn line(event: &LogEvent) -> Bytes {
    // Strings, numbers and flags: writing them cannot fail.
    let mut json = serde_json::to_vec(event).unwrap_or_default();
    json.push(b'\n');
    json.into()
}
