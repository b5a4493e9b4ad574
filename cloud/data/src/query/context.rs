//! What of a request is not in the request.

use resources::Model;

use crate::caller::Caller;
use crate::dialect::Dialect;

/// What of a request is not in the request.
#[derive(Debug, Clone, Copy)]
pub struct QueryContext<'a> {
    /// The version of the API that it is made to.
    pub model: &'a Model,
    /// The database.
    pub dialect: Dialect,
    /// Who makes it.
    pub caller: &'a Caller,
    /// Milliseconds since the epoch; what `now()` answers.
    pub now: i64,
    /// The path that addresses of rows begin with (`/v7`), where every row and link has one, as with
    /// `$format=json;odata.metadata=full`.
    pub addresses: &'a str,
    /// Rows and links always have their addresses (older versions).
    pub always_addressed: bool,
    /// Unknown names in `$select` and `$expand` are passed over (older versions).
    pub lenient: bool,
    /// Names of the configuration variable that switches the tunnel off, the current one first: a device
    /// without a tunnel lacks nothing then (docs/spec/cloud.md#model-overall-status).
    pub tunnel_variables: &'a [String],
    /// The address that this cloud is reached by (`https://cloud.example.com`), which addresses of files begin
    /// with.
    pub origin: &'a str,
}
