//! `POST /v1/blink`: shows the device to a person.

use http::{Method, StatusCode};

use crate::answer;
use crate::operation::{Answer, Operation};
use crate::routes::{Handler, Route};

pub(crate) const ROUTES: &[Route] = &[Route {
    method: Method::POST,
    path: "/v1/blink",
    summary: "blinks an LED for 15 s, if the device has one",
    operation: Operation::answering(&[Answer::empty(
        StatusCode::OK,
        "the device identifies itself for 15 s, if it can",
    )]),
    handler: Handler::Now(|api, call| {
        api.endpoints.identify(call.caller.requester());
        Ok(answer::empty(StatusCode::OK))
    }),
}];
