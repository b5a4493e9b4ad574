//! Why an engine did not do as it was told.

use std::error::Error;

use model::EngineKind;

/// Callers tell apart what they can act on; all else is [`EngineError::Failed`].
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The image, container, volume or network is not there.
    #[error("{what} was not found")]
    NotFound { what: String },
    /// The name belongs to something else.
    #[error("{what} already exists and is not this device's: {hint}")]
    Conflict { what: String, hint: String },
    /// Something else needs it.
    #[error("{what} is in use")]
    InUse { what: String },
    /// The image is of a kind that this engine does not run.
    #[error("`{image}` is not an image that the {engine} engine runs: {reason}")]
    WrongKind {
        image: String,
        engine: EngineKind,
        reason: String,
    },
    /// The engine does not answer.
    #[error("the {engine} engine does not answer at `{address}`")]
    Unreachable {
        engine: EngineKind,
        address: String,
        source: Box<dyn Error + Send + Sync>,
    },
    /// It answered with a failure.
    #[error("failed to {action}")]
    Failed {
        action: String,
        source: Box<dyn Error + Send + Sync>,
    },
    /// What was asked cannot be done, and trying again would not help.
    #[error("{0}")]
    Invalid(String),
}

impl EngineError {
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
