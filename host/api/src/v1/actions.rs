//! `POST /v1/restart` and `POST /v1/purge`: all services of the app that the body names (docs/spec/device.md#v1).

use http::{Method, StatusCode};
use model::{Action, ActionError, Verb};
use schemars::JsonSchema;
use serde::Serialize;

use crate::action_body::AppAction;
use crate::answer::{self, Failure};
use crate::app::Api;
use crate::body;
use crate::call::Call;
use crate::operation::{Answer, Operation, schema};
use crate::routes::{Handler, Outcome, Route};
use crate::services;

const OUT_OF_SCOPE: Answer = Answer::failed(StatusCode::UNAUTHORIZED, "the key is of another app");
const NOT_CURRENT: Answer = Answer::failed(
    StatusCode::SERVICE_UNAVAILABLE,
    "the device does not run the app",
);

pub(crate) const ROUTES: &[Route] = &[
    Route {
        method: Method::POST,
        path: "/v1/restart",
        summary: "removes the containers of an app and creates them again",
        operation: Operation::answering(&[
            Answer::OK,
            Answer::text(
                StatusCode::BAD_REQUEST,
                "`appId` is missing or not a number",
            ),
            OUT_OF_SCOPE,
            Answer::LOCKED,
            NOT_CURRENT,
        ])
        .taking(schema::<AppAction>),
        handler: Handler::Later(|api, call| Box::pin(restart(api, call))),
    },
    Route {
        method: Method::POST,
        path: "/v1/purge",
        summary: "removes all data of an app and creates its containers again",
        operation: Operation::answering(&[
            Answer::json("all data has been removed", schema::<DataAndError>),
            Answer::text(
                StatusCode::BAD_REQUEST,
                "`appId` is missing or not a number",
            ),
            OUT_OF_SCOPE,
            Answer::LOCKED,
            NOT_CURRENT,
        ])
        .taking(schema::<AppAction>),
        handler: Handler::Later(|api, call| Box::pin(purge(api, call))),
    },
];

/// `{"Data":"OK","Error":""}`, and the failures of the same shape.
#[derive(Serialize, JsonSchema)]
pub(super) struct DataAndError<'a> {
    #[serde(rename = "Data")]
    /// `OK`, or empty if the action failed.
    pub(super) data: &'a str,
    #[serde(rename = "Error")]
    /// The reason of a failure, or empty.
    pub(super) error: &'a str,
}

async fn restart(api: Api, call: Call) -> Outcome {
    act(api, call, Verb::Restart(None), "Missing app id").await?;
    Ok(answer::text(StatusCode::OK, "OK"))
}

async fn purge(api: Api, call: Call) -> Outcome {
    act(api, call, Verb::Purge, "Invalid or missing appId").await?;
    Ok(answer::json(&DataAndError {
        data: "OK",
        error: "",
    }))
}

async fn act(api: Api, call: Call, verb: Verb, no_id: &'static str) -> Result<(), Failure> {
    let scope = call.caller.scope;
    let body: AppAction = body::action(call.request).await?;
    let Some(number) = body.app_id.filter(|number| *number != 0) else {
        return Err(Failure::Plain(StatusCode::BAD_REQUEST, no_id));
    };
    let id = services::app_id(Some(number));
    if !scope.covers_number(id) {
        return Err(Failure::out_of_scope());
    }
    let Some(id) = id else {
        return Err(services::not_current(number));
    };
    let status = api.device.status();
    let Some(found) = services::current_app(&status, id) else {
        return Err(services::not_current(id));
    };
    let action = Action {
        app: found.uuid.clone(),
        verb,
        force: body.force,
    };
    drop(status);
    let done: Result<(), ActionError> = api.device.act(action).await;
    done.map_err(Failure::of_action)
}
