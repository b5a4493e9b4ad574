//! What an owner signs of a release, and how a device holds the cloud's targets to it: a stolen cloud is then no
//! stolen fleet.
//!
//! `fleet sign` makes a [`Statement`] of a release and signs its text; the cloud keeps both as one text
//! ([`SignedText`]) and understands nothing of it. A device whose [`TargetPolicy`] asks for signatures takes a target
//! only where [`judge`] finds in it what was signed and nothing else. All of this is pure: no clock, no file.

#![warn(missing_docs)]

mod accepted;
mod difference;
mod digest;
mod judge;
mod policy;
mod signed_text;
mod statement;

pub use accepted::{AcceptedRelease, AcceptedReleases};
pub use digest::Digest;
pub use judge::{Now, Refusal, judge};
pub use policy::TargetPolicy;
pub use signed_text::{MOST_BYTES, SignedText, TextError};
pub use statement::{
    ALWAYS_OPEN, Allowances, FORMAT, SignedApp, SignedRelease, SignedService, Statement,
    StatementError, Unsignable,
};

#[cfg(test)]
mod tests;
