//! `GET /ping`: the process lives. Needs no key and looks at nothing, so that it answers when nothing
//! else does.

use http::{Method, StatusCode};

use crate::answer;
use crate::device::Response;
use crate::operation::{Answer, Operation};
use crate::routes::{Handler, Route};

/// The path, which is answered before keys are checked and routes are looked up.
pub(crate) const PATH: &str = "/ping";

pub(crate) const ROUTES: &[Route] = &[Route {
    method: Method::GET,
    path: PATH,
    summary: "checks whether the supervisor is running",
    operation: Operation::answering(&[Answer::text(StatusCode::OK, "`OK`: it is running")])
        .without_key(),
    // Here so that the path is known; it is answered before keys are looked at.
    handler: Handler::Now(|_, _| Ok(ping())),
}];

/// 200, text `OK`.
pub(crate) fn ping() -> Response {
    answer::text(StatusCode::OK, "OK")
}
