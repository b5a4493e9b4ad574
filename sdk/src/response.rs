//! The answer to a request, if [`crate::Json`], text or an empty body are not enough.

use crate::bindings::endpoint::platform::supervisor::types as wit;
use crate::body::{Body, BodyWriter};
use crate::headers::Headers;

/// An answer with its status, headers and body.
///
/// ```
/// use supervisor_sdk::Response;
///
/// let created = Response::text("made\n").with_status(201).with_header("location", "/v3/things/1");
/// assert_eq!(created.status(), 201);
/// ```
#[derive(Debug)]
pub struct Response {
    status: u16,
    headers: Headers,
    body: Body,
}

impl Response {
    /// The type of a JSON body.
    pub const JSON: &'static str = "application/json; charset=utf-8";
    /// The type of a text body.
    pub const TEXT: &'static str = "text/plain; charset=utf-8";

    /// Creates an answer with no headers and no body. If the status is outside 200 to 599, the host
    /// answers with 502.
    #[must_use]
    pub fn new(status: u16) -> Self {
        Self {
            status,
            headers: Headers::default(),
            body: Body::empty(),
        }
    }

    /// Creates a 200 without a body.
    #[must_use]
    pub fn empty() -> Self {
        Self::new(200)
    }

    /// Creates a 200 with text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(200)
            .with_header("content-type", Self::TEXT)
            .with_body(text.into())
    }

    /// Creates a 200 whose body `write` writes piece by piece while the caller reads. `write` runs after
    /// the handler has returned, until it ends, the caller disconnects (see [`BodyWriter::write`]), or
    /// the plugin's limits end it.
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use supervisor_sdk::{Response, timer};
    ///
    /// async fn ticks() -> Response {
    ///     Response::stream("text/plain; charset=utf-8", async |body| {
    ///         while body.write("tick\n").await.is_ok() {
    ///             timer::sleep(Duration::from_secs(1)).await;
    ///         }
    ///     })
    /// }
    /// ```
    #[must_use]
    pub fn stream(content_type: &str, write: impl AsyncFnOnce(&mut BodyWriter) + 'static) -> Self {
        Self::new(200)
            .with_header("content-type", content_type)
            .with_body(Body::written_by(write))
    }

    /// Sets the status.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// Adds a header field; existing fields with the same name stay.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        let name = name.to_ascii_lowercase();
        self.headers.0.push((name, value.as_ref().to_vec()));
        self
    }

    /// Replaces the body. This can be the body of the request: its bytes then do not pass through the
    /// plugin.
    #[must_use]
    pub fn with_body(mut self, body: impl Into<Body>) -> Self {
        self.body = body.into();
        self
    }

    /// Returns the status.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Returns the header fields.
    #[must_use]
    pub fn headers(&self) -> &Headers {
        &self.headers
    }

    /// Returns the body.
    #[must_use]
    pub fn body(&self) -> &Body {
        &self.body
    }
}

impl From<Response> for wit::Response {
    fn from(response: Response) -> Self {
        Self {
            status: response.status,
            headers: response.headers.0,
            body: response.body.into(),
        }
    }
}
