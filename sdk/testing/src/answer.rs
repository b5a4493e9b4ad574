//! The answers of plugins.

use bytes::Bytes;
use http::{HeaderMap, StatusCode};

/// An answer whose body has been read to its end.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The header fields.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl Answer {
    /// Returns the body as text.
    ///
    /// # Panics
    /// If it is not UTF-8.
    #[must_use]
    #[track_caller]
    pub fn text(&self) -> &str {
        str::from_utf8(&self.body).unwrap_or_else(|error| panic!("the body is not text: {error}"))
    }

    /// Returns the body as JSON.
    ///
    /// # Panics
    /// If it is not JSON.
    #[must_use]
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("`{}` is not JSON: {error}", self.text()))
    }
}
