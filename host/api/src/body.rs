//! Reads request bodies: limited in time and size, and as leniently as clients of this API are used to
//! (docs/spec/device.md#http-body). A body of another type, or none, reads as `{}`; one that claims to be JSON must be
//! JSON.

use axum::body::Body;
use axum::extract::{FromRef, FromRequest};
use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::answer::Failure;
use crate::bounds::{LARGE_BODY, LARGE_VALUES, SEND_WITHIN, SMALL_BODY, SMALL_VALUES};
use crate::large_body::{LargeBodies, LargeBodyTurn};
use crate::message::Request;

/// The byte-order mark of UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The body of an action, as the type that declares its fields. A value that does not fit its field counts as absent;
/// an array, which the API also accepts at the top level, has no fields.
///
/// It is refused with 400 if it is malformed, 413 if it is too long or has too many values, 408 if it does not
/// arrive, 415 if it is compressed or not in UTF-8.
pub(crate) struct Fields<T>(pub(crate) T);

impl<S: Sync, T: DeserializeOwned> FromRequest<S> for Fields<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, _: &S) -> Result<Self, Failure> {
        let document = parse(request, None).await?;
        let fields = T::deserialize(Value::Object(document.fields));
        let fields = fields.map_err(|error| Failure::invalid(error.to_string()))?;
        Ok(Fields(fields))
    }
}

/// The fields of a large or small body. For a large one, `turn` must be held as long as the fields are. Such a body
/// must not be mistaken for `{}`, so anything but JSON is refused.
///
/// It is refused like [`Fields`], and also with 415 if it is of another type, and with 503 if other large bodies block
/// it.
pub(crate) struct Document {
    pub(crate) fields: Map<String, Value>,
    pub(crate) turn: Option<LargeBodyTurn>,
}

impl<S: Sync> FromRequest<S> for Document
where
    LargeBodies: FromRef<S>,
{
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        match content_type(&request).as_deref() {
            Some(essence) if is_json(essence) => {
                parse(request, Some(&LargeBodies::from_ref(state))).await
            }
            _ => Err(unsupported(
                "the body must be JSON: send it with `Content-Type: application/json`",
            )),
        }
    }
}

fn unsupported(message: impl Into<String>) -> Failure {
    Failure::Refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, message.into())
}

async fn parse(request: Request, large: Option<&LargeBodies>) -> Result<Document, Failure> {
    let form = match content_type(&request).as_deref() {
        Some(essence) if is_json(essence) => false,
        Some("application/x-www-form-urlencoded") => true,
        _ => {
            return Ok(Document {
                fields: Map::new(),
                turn: None,
            });
        }
    };
    refuse_encoding(&request)?;
    refuse_charset(&request)?;
    // In this order, so that the bytes are freed before the turn ends.
    let (turn, bytes) = read(request, large).await?;
    let most = if large.is_some() {
        LARGE_VALUES
    } else {
        SMALL_VALUES
    };
    let fields = if bytes.is_empty() {
        Map::new()
    } else if form {
        refuse_many(form_fields(&bytes), most)?;
        parse_form(&bytes)
    } else {
        refuse_many(json_values(&bytes), most)?;
        parse_json(&bytes)?
    };
    Ok(Document { fields, turn })
}

/// Returns the maximum number of values in a JSON text: one, plus one for each separator outside of strings.
fn json_values(text: &[u8]) -> usize {
    let mut values = 1;
    let mut bytes = text.iter();
    let mut quoted = false;
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => quoted = !quoted,
            b'\\' if quoted => {
                bytes.next();
            }
            b',' | b'[' | b'{' if !quoted => values += 1,
            _ => {}
        }
    }
    values
}

fn form_fields(text: &[u8]) -> usize {
    1 + text.iter().filter(|byte| **byte == b'&').count()
}

/// Refuses too many values. They are counted before parsing, since parsing is what takes the memory.
fn refuse_many(values: usize, most: usize) -> Result<(), Failure> {
    if values <= most {
        return Ok(());
    }
    Err(Failure::Refused(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!("the request body has more than {most} values"),
    ))
}

fn is_json(essence: &str) -> bool {
    essence == "application/json"
        || (essence.starts_with("application/") && essence.ends_with("+json"))
}

/// Returns the media type in lower case, without its parameters.
fn content_type(request: &Request) -> Option<String> {
    let value = request.headers().get(CONTENT_TYPE)?.to_str().ok()?;
    let (essence, _) = value.split_once(';').unwrap_or((value, ""));
    Some(essence.trim().to_ascii_lowercase())
}

/// Refuses other charsets: bodies are UTF-8, whether or not the header says so.
fn refuse_charset(request: &Request) -> Result<(), Failure> {
    let value = request.headers().get(CONTENT_TYPE);
    let value = value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let charset = value.split(';').skip(1).find_map(|parameter| {
        let (name, charset) = parameter.split_once('=')?;
        let is_charset = name.trim().eq_ignore_ascii_case("charset");
        is_charset.then(|| charset.trim().trim_matches('"').to_ascii_lowercase())
    });
    match charset.as_deref() {
        None | Some("utf-8" | "utf8" | "us-ascii") => Ok(()),
        Some(other) => Err(unsupported(format!(
            "the body is in `{other}`: send it in UTF-8"
        ))),
    }
}

pub(crate) fn refuse_encoding(request: &Request) -> Result<(), Failure> {
    match request.headers().get(CONTENT_ENCODING) {
        Some(encoding) if !encoding.as_bytes().eq_ignore_ascii_case(b"identity") => Err(
            unsupported("compressed bodies are not supported: send it without `Content-Encoding`"),
        ),
        _ => Ok(()),
    }
}

/// Reads the whole body, with its turn if it is large. If the announced length is too long, it is refused before it is
/// read.
async fn read(
    request: Request,
    large: Option<&LargeBodies>,
) -> Result<(Option<LargeBodyTurn>, Bytes), Failure> {
    let announced: u64 = request
        .headers()
        .get(CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse().ok())
        .unwrap_or(0);
    let most = if large.is_some() {
        LARGE_BODY
    } else {
        SMALL_BODY
    };
    if announced > most as u64 {
        return Err(too_large(most));
    }
    let mut body = request.into_body();
    let mut whole = BytesMut::new();
    if announced <= SMALL_BODY as u64 {
        let is_whole = in_time(collect(&mut body, &mut whole, SMALL_BODY)).await?;
        if is_whole {
            return Ok((None, whole.freeze()));
        }
    }
    let Some(large) = large else {
        return Err(too_large(most));
    };
    let turn = large.turn().await?;
    if !in_time(collect(&mut body, &mut whole, most)).await? {
        return Err(too_large(most));
    }
    Ok((Some(turn), whole.freeze()))
}

async fn in_time(collecting: impl Future<Output = Result<bool, Failure>>) -> Result<bool, Failure> {
    match tokio::time::timeout(SEND_WITHIN, collecting).await {
        Ok(collected) => collected,
        Err(_) => Err(Failure::Refused(
            StatusCode::REQUEST_TIMEOUT,
            format!(
                "the request body did not arrive within {} s",
                SEND_WITHIN.as_secs()
            ),
        )),
    }
}

/// Adds incoming data to `whole`, and returns whether it is complete: it stops as soon as `whole` is longer than `most`
/// bytes.
async fn collect(body: &mut Body, whole: &mut BytesMut, most: usize) -> Result<bool, Failure> {
    while whole.len() <= most {
        let Some(frame) = body.frame().await else {
            return Ok(true);
        };
        let frame =
            frame.map_err(|_| Failure::invalid("the request body ended before it was complete"))?;
        if let Ok(data) = frame.into_data() {
            whole.extend_from_slice(&data);
        }
    }
    Ok(false)
}

fn too_large(most: usize) -> Failure {
    Failure::Refused(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!("the request body is larger than {} KiB", most >> 10),
    )
}

fn parse_json(bytes: &[u8]) -> Result<Map<String, Value>, Failure> {
    // RFC 8259, section 8.1: parsers may ignore a byte-order mark, which some editors and shells write.
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(Value::Array(_)) => Ok(Map::new()),
        Ok(_) => Err(Failure::invalid(
            "malformed JSON in the request body: the top level must be an object or an array, at line 1 column 1",
        )),
        Err(error) => Err(Failure::invalid(format!(
            "malformed JSON in the request body: {error}"
        ))),
    }
}

/// Returns a form's fields as strings; a repeated field is an array of them.
fn parse_form(bytes: &[u8]) -> Map<String, Value> {
    let mut fields = Map::new();
    for (name, value) in form_urlencoded::parse(bytes) {
        let value = Value::String(value.into_owned());
        match fields.get_mut(name.as_ref()) {
            None => {
                fields.insert(name.into_owned(), value);
            }
            Some(Value::Array(values)) => values.push(value),
            Some(first) => *first = Value::Array(vec![first.take(), value]),
        }
    }
    fields
}

#[cfg(test)]
mod tests;
