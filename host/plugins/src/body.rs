//! The body of an answer: bytes that are there, or a stream that a plugin or the host produces.

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};

/// The body of a plugin's answer. Dropping it ends the guest that produces it.
pub type Body = UnsyncBoxBody<Bytes, BodyError>;

/// A stream that broke off. The connection is closed without the end that HTTP would have, so that the
/// client sees that something is missing; why is in the log.
#[derive(Debug, Clone, thiserror::Error)]
#[error("plugin `{plugin}` did not finish its answer")]
pub struct BodyError {
    /// The plugin's name.
    pub plugin: String,
}

/// Bytes that are there.
pub(crate) fn whole(bytes: Vec<u8>) -> Body {
    Full::from(bytes)
        .map_err(|never| match never {})
        .boxed_unsync()
}
