//! Reasons why an engine did not carry out a request.

use std::error::Error;
use std::path::PathBuf;

use model::EngineKind;

/// An engine's failure. Callers can tell apart those that they can act on; all others are
/// [`EngineError::Failed`].
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The image, container, volume or network does not exist.
    #[error("{what} was not found")]
    NotFound {
        /// The object, phrased as in a sentence: "the volume `12_data`".
        what: String,
    },
    /// The name belongs to something else.
    #[error("{what} already exists and does not belong to this device: {hint}")]
    Conflict {
        /// The object that has the name, phrased as in a sentence.
        what: String,
        /// What to do about it.
        hint: String,
    },
    /// Something else needs it.
    #[error("{what} is in use")]
    InUse {
        /// The object, phrased as in a sentence.
        what: String,
    },
    /// The image is of a kind that this engine does not run.
    #[error("`{image}` is not an image that the {engine} engine runs: {reason}")]
    WrongKind {
        /// The image's reference.
        image: String,
        /// The engine that was to run it.
        engine: EngineKind,
        /// What the image is instead, or lacks.
        reason: String,
    },
    /// The disk has no room for the image: the download was not started.
    #[error(
        "there is no room for `{image}`: the {} to download take up to {} and {} stay reserved, but the file system of `{}` has only {} free; remove what nothing needs, for example unused volumes with `GET /v2/cleanup-volumes`, or publish a smaller image",
        mebibytes(*download),
        mebibytes(*needed),
        mebibytes(*reserved),
        folder.display(),
        mebibytes(*free)
    )]
    NoRoom {
        /// The image's reference.
        image: String,
        /// The size of the transfer, in bytes.
        download: u64,
        /// The most space that it takes on the disk, in bytes.
        needed: u64,
        /// The space that must stay free, in bytes.
        reserved: u64,
        /// The free space in bytes, including the reserve.
        free: u64,
        /// Where the engine keeps images.
        folder: PathBuf,
    },
    /// The engine does not answer.
    #[error("the {engine} engine does not answer at `{address}`")]
    Unreachable {
        /// The engine in question.
        engine: EngineKind,
        /// The address that was tried: the URI of its socket.
        address: String,
        /// Why the connection failed.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The engine answered with a failure.
    #[error("failed to {action}")]
    Failed {
        /// The action that failed, as a verb and its object.
        action: String,
        /// The error from the engine or the operating system.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The engine refuses to start the container because of what it kept of an earlier start. That may end by itself; if it
    /// does not, only another container in its place can run.
    #[error("failed to start `{name}`: the engine still keeps state of an earlier start")]
    StuckInRuntime {
        /// The container's name.
        name: String,
        /// The engine's reason.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The request cannot be carried out, and trying again would not help.
    #[error("{0}")]
    Invalid(String),
}

impl EngineError {
    /// Creates [`EngineError::NotFound`] for `what`, phrased as in a sentence.
    pub fn not_found(what: impl Into<String>) -> Self {
        EngineError::NotFound { what: what.into() }
    }

    /// Creates [`EngineError::InUse`] for `what`, phrased as in a sentence.
    pub fn in_use(what: impl Into<String>) -> Self {
        EngineError::InUse { what: what.into() }
    }

    /// Creates [`EngineError::Failed`] for `action` ("pull `busybox`").
    pub fn failed(
        action: impl Into<String>,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        EngineError::Failed {
            action: action.into(),
            source: source.into(),
        }
    }
}

/// Formats a size for people to compare.
fn mebibytes(bytes: u64) -> String {
    let tenths = bytes.saturating_mul(10) >> 20;
    format!("{}.{} MiB", tenths / 10, tenths % 10)
}
