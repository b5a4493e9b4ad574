//! The context of a request.

use resources::Model;

use crate::caller::Caller;
use crate::dialect::Dialect;

/// The context of a request: everything that the request itself does not contain.
#[derive(Debug, Clone, Copy)]
pub struct QueryContext<'a> {
    /// The model of the API version that the request uses.
    pub model: &'a Model,
    /// The database.
    pub dialect: Dialect,
    /// The caller.
    pub caller: &'a Caller,
    /// Milliseconds since the epoch; the result of `now()`.
    pub now: i64,
    /// The prefix of the addresses of rows and links (`/v7`), if they are shown, as with
    /// `$format=json;odata.metadata=full`.
    pub addresses: &'a str,
    /// Whether rows and links always have their addresses (older versions).
    pub always_addressed: bool,
    /// Whether unknown names in `$select` and `$expand` are ignored (older versions).
    pub lenient: bool,
    /// Names of the configuration variable that switches the tunnel off, the current one first: a device without a
    /// tunnel then counts as complete (docs/spec/cloud.md#model-overall-status).
    pub tunnel_variables: &'a [String],
    /// The public address of this cloud (`https://cloud.example.com`), the prefix of file addresses.
    pub origin: &'a str,
}
