//! `GET /release-asset/v1/:file`: a file attached to a release.

use std::ops::RangeInclusive;

use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State};
use axum::response::IntoResponse as _;
use cloud_core::answer::{Answer, Refusal};
use cloud_core::cloud::SharedCloud;
use data::file::{FileRight, PIECE};
use data::{Database, SystemPurpose};
use futures::Stream;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use resources::Method;
use serde::Deserialize;

use crate::device::parameter;

/// The metadata of a file, as stored in its row.
#[derive(Deserialize)]
struct FileMetadata {
    /// Its path, including its key.
    href: String,
    content_type: String,
    content_disposition: String,
    size: u64,
}

/// Answers with the file, or the requested range of it. The address in its row is sufficient; without the key in it,
/// callers who may not read the row get 404.
pub(crate) async fn serve(
    State(cloud): State<SharedCloud>,
    Path(file): Path<String>,
    request: Request,
) -> Answer {
    let (parts, _) = request.into_parts();
    let identity = cloud.auth.admit(&parts).await?;
    let missing = || Refusal::Missing("there is no such file".to_owned());
    let file: i64 = file.parse().map_err(|_| missing())?;
    let select = SystemPurpose::Lookup.sql(
        "SELECT a.id, a.asset FROM release_asset AS a \
         JOIN release_asset_file AS f ON f.release_asset = a.id WHERE f.id = ?",
    );
    let row = cloud.database.row(&select.with(file)).await?;
    let row = row.ok_or_else(missing)?;
    let metadata: FileMetadata = serde_json::from_str(&row.some_text(1)?)
        .map_err(|error| Refusal::Fault(anyhow::Error::new(error).context("of a file")))?;
    let key = parameter(&parts, "key");
    let by_address = key.and_then(|key| FileRight::by_address(file, &key, &metadata.href));
    let right = match by_address {
        Some(right) => right,
        None => {
            let asset = row.id(0)?;
            let right = cloud.right(&identity.caller, "release_asset", asset, Method::Read);
            let right = right.await?.ok_or_else(missing)?;
            FileRight::by_row(file, asset, &right).ok_or_else(missing)?
        }
    };
    // The content of a file with this number never changes: a new file gets a new number.
    let tag = format!("\"asset-{file}\"");
    let size = metadata.size;
    let part = |range: RangeInclusive<u64>, length| {
        let body = content(cloud.database.clone(), right, range);
        let length = [(header::CONTENT_LENGTH, length)];
        (length, Body::from_stream(body))
    };
    let mut response = match range(&parts.headers, &tag, size) {
        RequestedRange::Nothing => StatusCode::NOT_MODIFIED.into_response(),
        RequestedRange::All => part(0..=size.saturating_sub(1), size.to_string()).into_response(),
        RequestedRange::Part(range) => {
            let (first, last) = (*range.start(), *range.end());
            let place = [(
                header::CONTENT_RANGE,
                format!("bytes {first}-{last}/{size}"),
            )];
            let part = part(range, (last - first + 1).to_string());
            (StatusCode::PARTIAL_CONTENT, place, part).into_response()
        }
        RequestedRange::Beyond => {
            let place = [(header::CONTENT_RANGE, format!("bytes */{size}"))];
            (StatusCode::RANGE_NOT_SATISFIABLE, place).into_response()
        }
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::ETAG, tag.as_str()),
        (header::ACCEPT_RANGES, "bytes"),
        (header::CONTENT_TYPE, &metadata.content_type),
        (header::CONTENT_DISPOSITION, &metadata.content_disposition),
        (header::CACHE_CONTROL, "private, no-cache"),
        // Anybody may have uploaded it: a browser must not treat it as a page of this cloud.
        (header::CONTENT_SECURITY_POLICY, "sandbox"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    }
    Ok(response)
}

/// The requested part of a file (RFC 9110, 13 and 14).
#[derive(Debug, PartialEq)]
enum RequestedRange {
    /// The client has the file already.
    Nothing,
    All,
    Part(RangeInclusive<u64>),
    /// A range outside the file.
    Beyond,
}

fn range(headers: &HeaderMap, tag: &str, size: u64) -> RequestedRange {
    let header_text = |name| {
        headers
            .get(name)
            .and_then(|value: &HeaderValue| value.to_str().ok())
    };
    let is_it = |other: &str| other.trim() == tag || other.trim() == "*";
    if header_text(header::IF_NONE_MATCH).is_some_and(|tags| tags.split(',').any(is_it)) {
        return RequestedRange::Nothing;
    }
    if header_text(header::IF_RANGE).is_some_and(|tags| tags.trim() != tag) {
        return RequestedRange::All;
    }
    let Some(ranges) = header_text(header::RANGE) else {
        return RequestedRange::All;
    };
    // An invalid range is ignored, as required by the standard.
    let Ok(ranges) = http_range_header::parse_range_header(ranges) else {
        return RequestedRange::All;
    };
    match ranges.validate(size).as_deref() {
        Ok([range]) => RequestedRange::Part(range.clone()),
        // Few clients request several ranges; they get the whole file.
        Ok(_) => RequestedRange::All,
        Err(_) => RequestedRange::Beyond,
    }
}

/// Why an answer is cut off.
#[derive(Debug, thiserror::Error)]
enum DownloadError {
    #[error(transparent)]
    Data(#[from] data::DataError),
    #[error("the file was replaced or deleted meanwhile")]
    Gone,
}

/// Streams the bytes of a range, with one piece in memory at a time.
fn content(
    database: Database,
    right: FileRight,
    range: RangeInclusive<u64>,
) -> impl Stream<Item = Result<Bytes, DownloadError>> + Send + 'static {
    const LONG: u64 = PIECE as u64;
    let (first, last) = range.into_inner();
    futures::stream::try_unfold(first, move |at| {
        let database = database.clone();
        async move {
            if at > last {
                return Ok(None);
            }
            let number = i64::try_from(at / LONG).unwrap_or(i64::MAX);
            let piece = database.piece(right, number).await?;
            // An empty file has no pieces.
            let Some(piece) = piece else {
                return match last {
                    0 => Ok(None),
                    _ => Err(DownloadError::Gone),
                };
            };
            let begin = at % LONG;
            let end = (last - (at - begin) + 1).min(piece.len() as u64);
            let part = Bytes::from(piece);
            let (begin, end) = (as_index(begin), as_index(end));
            if begin >= end {
                return Err(DownloadError::Gone);
            }
            let part = part.slice(begin..end);
            let next = at + part.len() as u64;
            Ok(Some((part, next)))
        }
    })
}

fn as_index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_what_the_standard_says() {
        let request = |pairs: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.insert(*name, HeaderValue::from_str(value).expect("a value"));
            }
            range(&headers, "\"asset-1\"", 100)
        };
        assert_eq!(request(&[]), RequestedRange::All);
        assert_eq!(
            request(&[("range", "bytes=10-19")]),
            RequestedRange::Part(10..=19)
        );
        assert_eq!(
            request(&[("range", "bytes=90-")]),
            RequestedRange::Part(90..=99)
        );
        assert_eq!(
            request(&[("range", "bytes=-5")]),
            RequestedRange::Part(95..=99)
        );
        assert_eq!(request(&[("range", "bytes=200-")]), RequestedRange::Beyond);
        assert_eq!(request(&[("range", "lines=1-2")]), RequestedRange::All);
        assert_eq!(request(&[("range", "bytes=0-1,5-6")]), RequestedRange::All);
        assert_eq!(
            request(&[("if-none-match", "\"asset-1\"")]),
            RequestedRange::Nothing
        );
        let range_if = |tag| request(&[("range", "bytes=0-1"), ("if-range", tag)]);
        assert_eq!(range_if("\"asset-1\""), RequestedRange::Part(0..=1));
        assert_eq!(range_if("\"asset-2\""), RequestedRange::All);
    }
}
