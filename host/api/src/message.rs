//! The messages of HTTP in the form in which all parts of the API pass them on.

use axum::body::Body;

/// A request as it came from a socket or a test.
pub type Request = http::Request<Body>;
/// An answer, its body in memory or streamed.
pub type Response = http::Response<Body>;
