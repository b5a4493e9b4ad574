//! Why a request makes no statement.

/// Why, before it is known what the whole request is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) at: usize,
    pub(super) kind: FaultKind,
    pub(super) message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FaultKind {
    /// The request is wrong.
    Refused,
    /// The caller has nothing to do with a resource that it names, or there is none.
    NoRights,
    /// The model is wrong.
    Broken,
}

impl Fault {
    pub(super) fn refused(at: usize, message: String) -> Self {
        Fault {
            at,
            kind: FaultKind::Refused,
            message,
        }
    }

    pub(super) fn no_rights(at: usize, message: String) -> Self {
        Fault {
            at,
            kind: FaultKind::NoRights,
            message,
        }
    }

    pub(super) fn broken(message: String) -> Self {
        Fault {
            at: 0,
            kind: FaultKind::Broken,
            message,
        }
    }
}
