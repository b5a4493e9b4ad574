//! What one request may cost the database, stated in one place. Every refusal names its bound.
//!
//! The language bounds how long and how deep a request is ([`odata::MAX_LENGTH`], [`odata::MAX_DEPTH`]); these bound
//! what a short one can ask for.

use crate::caller::Caller;

/// What one request may cost.
#[derive(Debug)]
pub(super) struct Bounds {
    /// Tables that its statement names, those of the rules of access among them. A request that expands every link
    /// of a device names fifty.
    pub(super) tables: usize,
    /// `any`, `all` and `$count` in each other.
    pub(super) lambdas: usize,
    /// Of these, along links that lead to many rows: the database may look at every row of each for every row of the
    /// one before.
    pub(super) lambdas_to_many: usize,
    /// Expanded links in each other that lead to many rows.
    pub(super) expanded_to_many: usize,
    /// How often one resource stands on the path of an expansion, the one it begins at included: going back and forth
    /// multiplies rows that the caller has already.
    pub(super) same_resource: usize,
    /// Rows of one expanded link of one row.
    pub(super) expanded_rows: u64,
    /// Bytes of what one link expands to, for one row. SQLite holds every value to a length of its own
    /// (`sqlite::MAX_VALUE`).
    pub(super) expanded_bytes: u64,
    /// Characters of a text that functions (`replace`, `concat`) make of others.
    pub(super) text: u64,
}

/// Of whoever has a credential.
const HOLDERS: Bounds = Bounds {
    tables: 200,
    lambdas: 8,
    lambdas_to_many: 4,
    expanded_to_many: 4,
    same_resource: 2,
    expanded_rows: 10_000,
    expanded_bytes: 16 << 20,
    text: 4 << 20,
};

/// Of everybody else.
const GUESTS: Bounds = Bounds {
    tables: 80,
    lambdas: 4,
    lambdas_to_many: 2,
    expanded_to_many: 2,
    same_resource: 1,
    expanded_rows: 1000,
    expanded_bytes: 8 << 20,
    text: 256 << 10,
};

impl Bounds {
    pub(super) fn of(caller: &Caller) -> &'static Bounds {
        if caller.is_guest() { &GUESTS } else { &HOLDERS }
    }
}
