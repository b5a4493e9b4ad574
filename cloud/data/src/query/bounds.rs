//! The maximum database cost of one request, defined in one place. Every refusal names its bound.
//!
//! The language bounds the length and depth of a request ([`odata::MAX_LENGTH`], [`odata::MAX_DEPTH`]); these limits
//! bound what a short request can cause.

use crate::caller::Caller;

/// The maximum cost of one request.
#[derive(Debug)]
pub(super) struct Bounds {
    /// Tables in its statement, including those of access rules. A request that expands every link of a device has
    /// fifty.
    pub(super) tables: usize,
    /// Nested `any`, `all` and `$count`.
    pub(super) lambdas: usize,
    /// The part of these that follows links to many rows: the database may scan all rows of each for every row of the
    /// enclosing one.
    pub(super) lambdas_to_many: usize,
    /// Nested expanded links that lead to many rows.
    pub(super) expanded_to_many: usize,
    /// Occurrences of one resource on the path of an expansion, including the start: going back and forth multiplies
    /// rows that the caller already has.
    pub(super) same_resource: usize,
    /// Rows of one expanded link of one row.
    pub(super) expanded_rows: u64,
    /// Bytes of one expanded link of one row. SQLite has its own limit for every value (`sqlite::MAX_VALUE`).
    pub(super) expanded_bytes: u64,
    /// Characters of a text built from others by functions (`replace`, `concat`).
    pub(super) text: u64,
}

/// The limits for callers with a credential.
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

/// The limits for all others.
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
    pub(super) fn for_caller(caller: &Caller) -> &'static Bounds {
        if caller.is_guest() { &GUESTS } else { &HOLDERS }
    }
}
