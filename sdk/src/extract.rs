//! The types that a handler can have as arguments.

use serde::de::DeserializeOwned;

use crate::{Body, Error, Headers, Request, json_text, pairs};

/// The longest body that is collected in memory, in bytes: the limit of the supervisor's own endpoints.
/// The host checks the limit in the plugin's manifest earlier, and that one is mostly lower.
const WHOLE_BODY: usize = 10 << 20;
/// How much of the name of an encoding is shown, in characters.
const SHOWN: usize = 100;
/// How errors name the body.
const BODY: &str = "the body";

/// A part of a request that a handler can take as an argument.
///
/// At most one argument may take the body ([`Json`], [`Fields`], [`Body`], [`Request`]); a second one
/// would find it empty.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a handler",
    label = "this handler takes `{Self}`",
    note = "a handler takes `Path`, `Query`, `Json`, `Fields`, `Headers`, `Body`, `Caller` or `Request`, or a `Result` of one and `Error`"
)]
pub trait FromRequest: Sized {
    /// Extracts the value from the request.
    ///
    /// # Errors
    /// The answer to the caller; the handler is not called then.
    fn from_request(request: &mut Request) -> impl Future<Output = Result<Self, Error>>;
}

/// The route's `:names`: a struct by name, a tuple in order, or a plain value if there is one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Path<T>(pub T);

/// The query's parameters as a struct. Unknown ones are ignored, and repeated ones fill a `Vec`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Query<T>(pub T);

/// A JSON body of a request or an answer.
///
/// The body of a request must not be missing, and must be declared as JSON (or have no declared type);
/// [`Fields`] reads bodies leniently, as the endpoints of the device API's v1 and v2 do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Json<T>(pub T);

/// The fields of a body, read as in the device API's v1 and v2: a JSON object or a form; a body of
/// another type, an array, and an empty body read as `{}`. For fields that are never an error, see
/// [`crate::lenient`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fields<T>(pub T);

impl<T: DeserializeOwned> FromRequest for Path<T> {
    async fn from_request(request: &mut Request) -> Result<Self, Error> {
        pairs::read_names(&request.route, request.params.clone()).map(Self)
    }
}

impl<T: DeserializeOwned> FromRequest for Query<T> {
    async fn from_request(request: &mut Request) -> Result<Self, Error> {
        pairs::read("query parameter", form(request.query.as_bytes())).map(Self)
    }
}

impl<T: DeserializeOwned> FromRequest for Json<T> {
    async fn from_request(request: &mut Request) -> Result<Self, Error> {
        match request.headers.content_type() {
            Some(found) if !is_json(&found) => Err(Error::unsupported_type(format_args!(
                "the body is `{found}`, but must be `application/json`"
            ))),
            _ => {
                refuse_encoded(&request.headers)?;
                let body = request.take_body().bytes(WHOLE_BODY).await?;
                let value = json_text::read(BODY, &body).map_err(Error::bad_request)?;
                Ok(Self(value))
            }
        }
    }
}

impl<T: DeserializeOwned> FromRequest for Fields<T> {
    async fn from_request(request: &mut Request) -> Result<Self, Error> {
        let declared = request.headers.content_type().unwrap_or_default();
        let is_form = declared == "application/x-www-form-urlencoded";
        if is_form || is_json(&declared) {
            refuse_encoded(&request.headers)?;
        }
        let body = request.take_body();
        if is_json(&declared) {
            let body = body.bytes(WHOLE_BODY).await?;
            if !body.is_empty() {
                return json_fields(&body).map(Self);
            }
        } else if is_form {
            let body = body.bytes(WHOLE_BODY).await?;
            return pairs::read("field", form(&body)).map(Self);
        }
        json_fields(b"{}").map(Self)
    }
}

/// Reads the fields of a JSON object. It is first read as a `Value`, in which the last one of repeated
/// names counts, as clients of v1 and v2 expect.
fn json_fields<T: DeserializeOwned>(body: &[u8]) -> Result<T, Error> {
    let value = match json_text::read_value(BODY, body).map_err(Error::bad_request)? {
        serde_json::Value::Array(_) => serde_json::Value::Object(serde_json::Map::default()),
        object @ serde_json::Value::Object(_) => object,
        _ => return Err(Error::bad_request("the body must be a JSON object")),
    };
    json_text::from_value(BODY, value).map_err(Error::bad_request)
}

/// Refuses bodies that are compressed or in an encoding other than UTF-8.
fn refuse_encoded(headers: &Headers) -> Result<(), Error> {
    match headers.get("content-encoding") {
        Some(encoding) if !encoding.eq_ignore_ascii_case("identity") => {
            return Err(Error::unsupported_type(
                "compressed bodies are not supported: send it without `Content-Encoding`",
            ));
        }
        _ => {}
    }
    match headers.charset().as_deref() {
        None | Some("utf-8" | "utf8" | "us-ascii") => Ok(()),
        Some(other) => {
            let other: String = other.chars().take(SHOWN).collect();
            Err(Error::unsupported_type(format_args!(
                "the body is in `{other}`: send it in UTF-8"
            )))
        }
    }
}

fn form(text: &[u8]) -> Vec<(String, String)> {
    form_urlencoded::parse(text).into_owned().collect()
}

fn is_json(content_type: &str) -> bool {
    content_type == "application/json"
        || (content_type.starts_with("application/") && content_type.ends_with("+json"))
}

impl FromRequest for Request {
    async fn from_request(request: &mut Request) -> Result<Self, Error> {
        Ok(std::mem::take(request))
    }
}

impl FromRequest for Body {
    async fn from_request(request: &mut Request) -> Result<Self, Error> {
        Ok(request.take_body())
    }
}

impl FromRequest for Headers {
    async fn from_request(request: &mut Request) -> Result<Self, Error> {
        Ok(request.headers.clone())
    }
}

/// Leaves it to the handler how to deal with an argument that does not fit.
impl<T: FromRequest> FromRequest for Result<T, Error> {
    async fn from_request(request: &mut Request) -> Result<Self, Error> {
        Ok(T::from_request(request).await)
    }
}

#[cfg(test)]
mod tests;
