//! Why a request makes no statement.

/// Why, before it is known what the whole request is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CompileError {
    pub(super) at: usize,
    pub(super) kind: CompileErrorKind,
    pub(super) message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CompileErrorKind {
    /// The request is wrong.
    Refused,
    /// The caller has nothing to do with a resource that it names, or there is none.
    NoRights,
    /// The model is wrong.
    Broken,
}

impl CompileError {
    pub(super) fn refused(at: usize, message: String) -> Self {
        CompileError {
            at,
            kind: CompileErrorKind::Refused,
            message,
        }
    }

    pub(super) fn no_rights(at: usize, message: String) -> Self {
        CompileError {
            at,
            kind: CompileErrorKind::NoRights,
            message,
        }
    }

    pub(super) fn broken(message: String) -> Self {
        CompileError {
            at: 0,
            kind: CompileErrorKind::Broken,
            message,
        }
    }
}
