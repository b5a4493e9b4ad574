//! Rows as an answer: whole with an ETag where they are few, else as they come.

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use cloud_core::answer::{Refusal, json as json_answer};
use cloud_core::limits::Payer;
use futures::{Stream, StreamExt, TryStreamExt};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use sha2::{Digest, Sha256};

use crate::concurrency::Permit;
use crate::long_answers::LongAnswers;

/// Answers of up to so many bytes are put together before they are sent, and so have an ETag.
const WHOLE: usize = 4 << 20;

/// `{"d":[…]}` of rows as they come, for whoever pays.
///
/// # Errors
/// Where the rows cannot be read; 429 where the payer holds too many long answers.
pub(super) async fn listing(
    rows: impl Stream<Item = Result<Option<String>, data::DataError>> + Send + Unpin + 'static,
    headers: &HeaderMap,
    answers: &LongAnswers,
    payer: &Payer,
) -> Result<Response, Refusal> {
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

/// The rest of a long answer, while few rows of it are in memory.
fn streamed(
    begun: Vec<u8>,
    rows: impl Stream<Item = Result<Option<String>, data::DataError>> + Send + 'static,
    permit: Permit<Payer>,
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

/// A whole answer with its ETag; 304 where the client has it.
pub(crate) fn tagged(text: impl Into<Bytes>, headers: &HeaderMap) -> Response {
    let text = text.into();
    let hash = Sha256::digest(&text);
    let tag = format!("W/\"{}\"", hex::encode(hash.get(..16).unwrap_or(&hash)));
    let is_current = headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|value| value.trim() == "*" || value.trim() == tag);
    let mut response = if is_current {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        json_answer(StatusCode::OK, text)
    };
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}
