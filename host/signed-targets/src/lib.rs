//! What an owner signs for a release, and how a device checks the cloud's targets against it: whoever steals a cloud
//! does not get its fleet.
//!
//! `fleet sign` creates a [`Statement`] of a release and signs its text; the cloud stores both as one text
//! ([`SignedText`]) and does not interpret it. A device whose [`TargetPolicy`] requires signatures accepts a target
//! only if [`judge`] finds in it exactly what was signed. All of this is pure: no clock, no file.

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
pub use judge::{JudgementContext, Refusal, judge};
pub use policy::TargetPolicy;
pub use signed_text::{MOST_BYTES, SignedText, TextError};
pub use statement::{
    ALWAYS_OPEN, Allowances, FORMAT, SignedApp, SignedRelease, SignedService, SigningError,
    Statement, StatementError,
};

#[cfg(test)]
mod tests;
