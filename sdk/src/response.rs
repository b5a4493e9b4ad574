//! The answer to a request, if [`crate::Json`], text or nothing are not enough.

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

    /// An answer with no headers and no body. A status outside 200 to 599 is answered by the host as 502.
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

    /// 200 with a body that `write` writes piece by piece while the caller reads. It runs after the
    /// handler has returned, until it ends, the caller leaves (see [`BodyWriter::write`]), or the
    /// plugin's limits end it.
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

    /// Replaces the body. The body of the request may be returned: its bytes then pass outside
    /// the plugin.
    #[must_use]
    pub fn with_body(mut self, body: impl Into<Body>) -> Self {
        self.body = body.into();
        self
    }

    /// The status.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The header fields.
    #[must_use]
    pub fn headers(&self) -> &Headers {
        &self.headers
    }

    /// The body.
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
