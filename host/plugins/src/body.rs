//! The body of an answer: available bytes, or a stream that a plugin or the host produces.

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};

/// The body of a plugin's answer. Dropping it ends the guest that produces it.
pub type Body = UnsyncBoxBody<Bytes, BodyError>;

/// A stream that ended early. The connection is closed without the end that HTTP requires, so that the client notices
/// the missing part; the reason is in the log.
#[derive(Debug, Clone, thiserror::Error)]
#[error("plugin `{plugin}` did not finish its answer")]
pub struct BodyError {
    /// The plugin's name.
    pub plugin: String,
}

/// Creates a body from available bytes.
pub(crate) fn whole(bytes: Vec<u8>) -> Body {
    Full::from(bytes)
        .map_err(|never| match never {})
        .boxed_unsync()
}
