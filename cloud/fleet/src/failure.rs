//! Why a command failed, and the exit code that tells programs.

use std::error::Error;
use std::fmt::Display;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use registry_client::{ErrorKind, RegistryError};

/// The kind of a failure; each has its exit code (docs/fleet.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// 1: the attempt failed.
    Failed,
    /// 2: the command was used wrongly; repeating it does not help.
    Usage,
    /// 3: nobody is signed in, or the user lacks the permission.
    NotAllowed,
    /// 4: it does not exist.
    NotFound,
}

/// A failure, as it is printed.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    message: String,
    /// What to do about it.
    pub(crate) hint: Option<String>,
    source: Option<Box<dyn Error + Send + Sync>>,
    /// Somebody stopped the command.
    pub(crate) interrupted: bool,
}

pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    fn new(kind: Kind, message: impl Display) -> Self {
        Failure {
            kind,
            message: message.to_string(),
            hint: None,
            source: None,
            interrupted: false,
        }
    }

    pub(crate) fn failed(message: impl Display) -> Self {
        Self::new(Kind::Failed, message)
    }

    pub(crate) fn usage(message: impl Display) -> Self {
        Self::new(Kind::Usage, message)
    }

    pub(crate) fn not_allowed(message: impl Display) -> Self {
        Self::new(Kind::NotAllowed, message)
    }

    pub(crate) fn not_found(message: impl Display) -> Self {
        Self::new(Kind::NotFound, message)
    }

    /// Describes a file that cannot be read.
    pub(crate) fn unreadable(path: &Path, error: io::Error) -> Self {
        Self::failed(format!("{} cannot be read", path.display())).because(error)
    }

    /// Describes a file that cannot be written.
    pub(crate) fn unwritable(path: &Path, error: io::Error) -> Self {
        Self::failed(format!("{} cannot be written", path.display())).because(error)
    }

    /// Returns whether the cloud refused because such a row exists already.
    pub(crate) fn is_duplicate(&self) -> bool {
        self.message.contains("must be unique")
    }

    /// Adds a hint on what to do, unless there is a more specific one.
    pub(crate) fn or_hint(self, hint: impl Display) -> Self {
        match self.hint {
            Some(_) => self,
            None => self.hint(hint),
        }
    }

    /// Adds a hint on what to do.
    pub(crate) fn hint(mut self, hint: impl Display) -> Self {
        self.hint = Some(hint.to_string());
        self
    }

    /// Adds the cause.
    pub(crate) fn because(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Marks it as stopped by somebody.
    pub(crate) fn interrupted(mut self) -> Self {
        self.interrupted = true;
        self
    }

    /// Wraps it as the cause of a more general failure.
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

    /// Returns its causes, the closest first, without those that only repeat the previous one.
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

/// Converts a registry's error, or the cloud's own if it was the one that issues the token.
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
            ..Failure::new(kind, message)
        }
    }
}

/// The failure if nobody is signed in.
pub(crate) fn signed_out() -> Failure {
    Failure::not_allowed("you are not signed in")
        .hint("sign in with `fleet login URL`, or set FLEET_URL and FLEET_TOKEN")
}
