//! Rows as an answer: complete and with an ETag if it is short, otherwise streamed.

use axum::body::{Body, Bytes};
use axum::response::Response;
use cloud_core::answer::{Answer, json as json_answer};
use cloud_core::limits::RateLimitKey;
use futures::{Stream, StreamExt, TryStreamExt};
use http::{HeaderMap, StatusCode};

use crate::etag::tagged;
use crate::long_answers::LongAnswers;
use cloud_core::concurrency::Permit;

/// Answers of up to this many bytes are completed before they are sent, and so have an ETag.
const WHOLE: usize = 4 << 20;

/// Returns `{"d":[…]}` with rows as they arrive, counted for the payer.
///
/// # Errors
/// If the rows cannot be read; 429 if the payer holds too many long answers.
pub(super) async fn listing(
    rows: impl Stream<Item = Result<Option<String>, data::DataError>> + Send + Unpin + 'static,
    headers: &HeaderMap,
    answers: &LongAnswers,
    payer: &RateLimitKey,
) -> Answer {
    let mut rows = rows;
    let mut text = Vec::from(&b"{\"d\":["[..]);
    let mut first = true;
    while let Some(row) = rows.next().await {
        let row = row?.unwrap_or_default();
        if !first {
            text.push(b',');
        }
        first = false;
        text.extend_from_slice(row.as_bytes());
        if text.len() > WHOLE {
            let permit = answers.stream(payer)?;
            return Ok(streamed(text, rows, permit));
        }
    }
    text.extend_from_slice(b"]}");
    Ok(tagged(answers.hold(payer, text)?, headers))
}

/// Streams the rest of a long answer, with only a few rows in memory.
fn streamed(
    begun: Vec<u8>,
    rows: impl Stream<Item = Result<Option<String>, data::DataError>> + Send + 'static,
    permit: Permit<RateLimitKey>,
) -> Response {
    let begun = futures::stream::iter([Ok(Bytes::from(begun))]);
    let rest = rows.map_ok(move |row| {
        let _until_the_last = &permit;
        Bytes::from(format!(",{}", row.unwrap_or_default()))
    });
    let end = futures::stream::iter([Ok(Bytes::from_static(b"]}"))]);
    json_answer(
        StatusCode::OK,
        Body::from_stream(begun.chain(rest).chain(end)),
    )
}
