//! `POST /v1/blink`: shows the device to a person.

use http::{Method, StatusCode};

use crate::answer;
use crate::routes::{Handler, Route};

pub(crate) const ROUTES: &[Route] = &[Route {
    method: Method::POST,
    path: "/v1/blink",
    summary: "blinks an LED for 15 s, where the device has one",
    handler: Handler::Now(|api, _| {
        api.endpoints.identify();
        Ok(answer::empty(StatusCode::OK))
    }),
}];
