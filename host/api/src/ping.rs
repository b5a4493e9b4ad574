//! `GET /ping`: the process is alive. Needs no key and reads no state, so that it answers even if nothing else does.

use crate::operation::Answer;
use crate::route::Route;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/ping", ping)
            .summary("checks whether the supervisor is running")
            .without_key()
            .answering([Answer::text(200, "`OK`: it is running")]),
    ]
}

async fn ping() -> &'static str {
    "OK"
}
