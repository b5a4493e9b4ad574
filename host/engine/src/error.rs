//! Why an engine did not do as it was told.

use std::error::Error;
use std::path::PathBuf;

use model::EngineKind;

use crate::disk::{RESERVE, mebibytes};

/// Callers tell apart what they can act on; all else is [`EngineError::Failed`].
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The image, container, volume or network is not there.
    #[error("{what} was not found")]
    NotFound {
        /// Which object, as it stands in a sentence: "the volume `12_data`".
        what: String,
    },
    /// The name belongs to something else.
    #[error("{what} already exists and does not belong to this device: {hint}")]
    Conflict {
        /// Which object has the name, as it stands in a sentence.
        what: String,
        /// What to do about it.
        hint: String,
    },
    /// Something else needs it.
    #[error("{what} is in use")]
    InUse {
        /// Which object, as it stands in a sentence.
        what: String,
    },
    /// The image is of a kind that this engine does not run.
    #[error("`{image}` is not an image that the {engine} engine runs: {reason}")]
    WrongKind {
        /// The image's reference.
        image: String,
        /// The engine that was asked.
        engine: EngineKind,
        /// What the image is instead, or lacks.
        reason: String,
    },
    /// The disk has no room for the image: it was not begun.
    #[error(
        "there is no room for `{image}`: the {} to download take up to {} and {} stay reserved, but the file system of `{}` has only {} free; remove what nothing needs, for example unused volumes with `GET /v2/cleanup-volumes`, or publish a smaller image",
        mebibytes(*download),
        mebibytes(*needed),
        mebibytes(RESERVE),
        folder.display(),
        mebibytes(*free)
    )]
    NoRoom {
        /// The image's reference.
        image: String,
        /// What would be transferred, in bytes.
        download: u64,
        /// What of the disk that takes at its most, in bytes.
        needed: u64,
        /// In bytes, with what stays reserved.
        free: u64,
        /// Where the engine keeps images.
        folder: PathBuf,
    },
    /// The engine does not answer.
    #[error("the {engine} engine does not answer at `{address}`")]
    Unreachable {
        /// The engine that was asked.
        engine: EngineKind,
        /// Where it was looked for: the URI of its socket.
        address: String,
        /// Why the connection failed.
        source: Box<dyn Error + Send + Sync>,
    },
    /// It answered with a failure.
    #[error("failed to {action}")]
    Failed {
        /// What was being done, as a verb and its object.
        action: String,
        /// What the engine or the operating system said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// What was asked cannot be done, and trying again would not help.
    #[error("{0}")]
    Invalid(String),
}

impl EngineError {
    /// [`EngineError::NotFound`] of `what`, as it stands in a sentence.
    pub fn not_found(what: impl Into<String>) -> Self {
        EngineError::NotFound { what: what.into() }
    }

    /// [`EngineError::InUse`] of `what`, as it stands in a sentence.
    pub fn in_use(what: impl Into<String>) -> Self {
        EngineError::InUse { what: what.into() }
    }

    /// [`EngineError::Failed`] while doing `action` ("pull `busybox`").
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
