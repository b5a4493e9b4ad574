//! Why a command did not do what it was told, and the exit code that says so to programs.

use std::error::Error;
use std::fmt::Display;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use registry_client::{ErrorKind, RegistryError};

/// What kind of failure it is; each has its exit code (docs/fleet.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// 1: it was tried, and went wrong.
    Failed,
    /// 2: it was asked for wrongly; asking again in the same way helps nobody.
    Usage,
    /// 3: nobody is signed in, or who is may not.
    NotAllowed,
    /// 4: there is no such thing.
    NotFound,
}

/// A failure, as it is told.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    message: String,
    /// What to do about it.
    pub(crate) hint: Option<String>,
    source: Option<Box<dyn Error + Send + Sync>>,
    /// Somebody stopped it.
    pub(crate) interrupted: bool,
}

pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    fn of(kind: Kind, message: impl Display) -> Self {
        Failure {
            kind,
            message: message.to_string(),
            hint: None,
            source: None,
            interrupted: false,
        }
    }

    pub(crate) fn failed(message: impl Display) -> Self {
        Self::of(Kind::Failed, message)
    }

    pub(crate) fn usage(message: impl Display) -> Self {
        Self::of(Kind::Usage, message)
    }

    pub(crate) fn not_allowed(message: impl Display) -> Self {
        Self::of(Kind::NotAllowed, message)
    }

    pub(crate) fn not_found(message: impl Display) -> Self {
        Self::of(Kind::NotFound, message)
    }

    /// A file that cannot be read.
    pub(crate) fn unreadable(path: &Path, error: io::Error) -> Self {
        Self::failed(format!("{} cannot be read", path.display())).because(error)
    }

    /// A file that cannot be written.
    pub(crate) fn unwritable(path: &Path, error: io::Error) -> Self {
        Self::failed(format!("{} cannot be written", path.display())).because(error)
    }

    /// Whether the cloud refused it since there is such a row already.
    pub(crate) fn is_duplicate(&self) -> bool {
        self.message.contains("must be unique")
    }

    /// Says what can be done, where nothing more specific is said yet.
    pub(crate) fn or_hint(self, hint: impl Display) -> Self {
        match self.hint {
            Some(_) => self,
            None => self.hint(hint),
        }
    }

    /// Says what can be done.
    pub(crate) fn hint(mut self, hint: impl Display) -> Self {
        self.hint = Some(hint.to_string());
        self
    }

    /// Says what it came from.
    pub(crate) fn because(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Says that somebody stopped it.
    pub(crate) fn interrupted(mut self) -> Self {
        self.interrupted = true;
        self
    }

    /// The same, told as the cause of something larger.
    pub(crate) fn within(self, message: impl Display) -> Self {
        let (kind, hint, interrupted) = (self.kind, self.hint.clone(), self.interrupted);
        Failure {
            kind,
            message: message.to_string(),
            hint,
            source: Some(self.into()),
            interrupted,
        }
    }

    /// What it came from, the nearest first; a cause that only repeats the one before is left out.
    pub(crate) fn causes(&self) -> Vec<String> {
        let mut causes: Vec<String> = Vec::new();
        let mut next = self.source();
        while let Some(cause) = next {
            let text = cause.to_string();
            if !causes.last().is_some_and(|last| last.contains(&text)) {
                causes.push(text);
            }
            next = cause.source();
        }
        causes
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self.kind {
            Kind::Failed => 1,
            Kind::Usage => 2,
            Kind::NotAllowed => 3,
            Kind::NotFound => 4,
        })
    }
}

/// A registry's, or the cloud's own if it was asked for a token.
impl From<RegistryError> for Failure {
    fn from(mut error: RegistryError) -> Self {
        let (message, hint) = (error.to_string(), error.hint.take());
        let kind = match error.kind {
            ErrorKind::Failed | ErrorKind::TokenSource => Kind::Failed,
            ErrorKind::Denied => Kind::NotAllowed,
            ErrorKind::NotFound => Kind::NotFound,
        };
        let source = match error
            .into_source()
            .map(|source| source.downcast::<Failure>())
        {
            Some(Ok(failure)) => return *failure,
            Some(Err(source)) => Some(source),
            None => None,
        };
        Failure {
            hint,
            source,
            ..Failure::of(kind, message)
        }
    }
}

/// Nobody is signed in.
pub(crate) fn signed_out() -> Failure {
    Failure::not_allowed("you are not signed in")
        .hint("sign in with `fleet login URL`, or set FLEET_URL and FLEET_TOKEN")
}
