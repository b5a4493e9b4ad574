//! `GET /ping`: the process lives. Needs no key and looks at nothing, so that it answers when nothing
//! else does.

use http::StatusCode;

use crate::answer;
use crate::device::Response;

/// The path, which is answered ahead of keys and routes.
pub(crate) const PATH: &str = "/ping";

/// 200, text `OK`.
pub(crate) fn ping() -> Response {
    answer::text(StatusCode::OK, "OK")
}
