//! `POST /v1/blink`: makes the device identify itself to a person.

use axum::extract::State;

use crate::caller::Caller;
use crate::operation::Answer;
use crate::route::Route;
use crate::state::Api;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::post("/v1/blink", blink)
            .summary("blinks an LED for 15 s, if the device has one")
            .answering([Answer::empty(
                200,
                "the device identifies itself for 15 s, if it can",
            )]),
    ]
}

async fn blink(State(api): State<Api>, caller: Caller) {
    api.endpoints.identify(caller.requester());
}
