//! `POST /v1/restart` and `POST /v1/purge`: all services of the app that the body names (docs/spec/device.md#v1).

use axum::extract::State;
use http::StatusCode;
use model::Verb;
use schemars::JsonSchema;
use serde::Serialize;

use crate::action_body::AppAction;
use crate::answer::{Failure, Json};
use crate::body::Fields;
use crate::caller::Caller;
use crate::operation::{Answer, schema};
use crate::route::Route;
use crate::services;
use crate::state::Api;

const NO_APP_ID: Answer = Answer::text(400, "`appId` is missing or not a number");

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::post("/v1/restart", restart)
            .summary("removes the containers of an app and creates them again")
            .taking::<AppAction>()
            .answering([
                Answer::OK,
                NO_APP_ID,
                Answer::OTHER_APP,
                Answer::LOCKED,
                Answer::NOT_CURRENT,
            ]),
        Route::post("/v1/purge", purge)
            .summary("removes all data of an app and creates its containers again")
            .taking::<AppAction>()
            .answering([
                Answer::json("all data has been removed", schema::<DataAndError>),
                NO_APP_ID,
                Answer::OTHER_APP,
                Answer::LOCKED,
                Answer::NOT_CURRENT,
            ]),
    ]
}

/// `{"Data":"OK","Error":""}`, and the failures of the same shape.
#[derive(Serialize, JsonSchema)]
pub(super) struct DataAndError {
    #[serde(rename = "Data")]
    /// `OK`, or empty if the action failed.
    pub(super) data: &'static str,
    #[serde(rename = "Error")]
    /// The reason of a failure, or empty.
    pub(super) error: String,
}

async fn restart(
    State(api): State<Api>,
    caller: Caller,
    Fields(body): Fields<AppAction>,
) -> Result<&'static str, Failure> {
    act(&api, &caller, &body, Verb::Restart(None), "Missing app id").await?;
    Ok("OK")
}

async fn purge(
    State(api): State<Api>,
    caller: Caller,
    Fields(body): Fields<AppAction>,
) -> Result<Json<DataAndError>, Failure> {
    act(
        &api,
        &caller,
        &body,
        Verb::Purge,
        "Invalid or missing appId",
    )
    .await?;
    Ok(Json(DataAndError {
        data: "OK",
        error: String::new(),
    }))
}

async fn act(
    api: &Api,
    caller: &Caller,
    body: &AppAction,
    verb: Verb,
    no_id: &'static str,
) -> Result<(), Failure> {
    let Some(number) = body.app_id.filter(|number| *number != 0) else {
        return Err(Failure::Plain(StatusCode::BAD_REQUEST, no_id));
    };
    if !caller.scope.covers_number(number) {
        return Err(Failure::out_of_scope());
    }
    services::act_on_app(api, number, verb, body.force).await
}
