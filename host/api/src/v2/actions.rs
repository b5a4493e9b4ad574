//! `POST /v2/applications/:appId/…`: actions on one service, or on all services of an app
//! (docs/spec/device.md#v2-services).

use axum::extract::State;
use http::StatusCode;
use model::{Action, ServiceName, Verb};

use crate::action_body::{ForceFlag, ServiceAction};
use crate::answer::Failure;
use crate::body::Fields;
use crate::caller::Caller;
use crate::extract::Path;
use crate::operation::Answer;
use crate::route::Route;
use crate::services::{self, APP_NOT_FOUND, PARAMS_MISSING};
use crate::state::Api;

pub(crate) fn routes() -> Vec<Route> {
    let on_service = |path, verb: fn(ServiceName) -> Verb| {
        Route::post(path, move |api, caller, path, body| {
            act_on_service(api, caller, path, body, verb)
        })
        .taking::<ServiceAction>()
        .answering([
            Answer::OK,
            Answer::failed(
                400,
                "`appId` is not a number, or the fields contradict each other",
            ),
            Answer::text(400, "both fields are missing"),
            Answer::OTHER_APP,
            Answer::text(404, "the app or the service does not exist"),
            Answer::LOCKED,
        ])
    };
    let on_app = |path, verb: Verb| {
        Route::post(path, move |api, caller, path, body| {
            act_on_app(api, caller, path, body, verb)
        })
        .taking::<ForceFlag>()
        .answering([
            Answer::OK,
            Answer::failed(400, "`appId` is not a number"),
            Answer::OTHER_APP,
            Answer::LOCKED,
            Answer::NOT_CURRENT,
        ])
    };
    vec![
        on_service("/v2/applications/:appId/restart-service", |name| {
            Verb::Restart(Some(name))
        })
        .summary("removes the container of a service and creates it again"),
        on_service("/v2/applications/:appId/stop-service", Verb::Stop)
            .summary("stops a service and keeps its container"),
        on_service("/v2/applications/:appId/start-service", Verb::Start)
            .summary("starts a service that was stopped"),
        on_app("/v2/applications/:appId/restart", Verb::Restart(None))
            .summary("removes the containers of an app and creates them again"),
        on_app("/v2/applications/:appId/purge", Verb::Purge)
            .summary("removes all data of an app and creates its containers again"),
    ]
}

/// Returns the app's number from the path, if the key covers it.
fn app_number(segment: &str, caller: &Caller, invalid: &'static str) -> Result<i64, Failure> {
    let number = lenient::parse_int(segment).filter(|number| *number != 0);
    let number = number.ok_or_else(|| Failure::invalid(invalid))?;
    if caller.scope.covers_number(number) {
        Ok(number)
    } else {
        Err(Failure::out_of_scope())
    }
}

async fn act_on_service(
    State(api): State<Api>,
    caller: Caller,
    Path([app]): Path<1>,
    Fields(body): Fields<ServiceAction>,
    verb: fn(ServiceName) -> Verb,
) -> Result<&'static str, Failure> {
    let app = app_number(&app, &caller, "Invalid app id")?;
    if body.service_name.is_none() && body.image_id.is_none() {
        return Err(Failure::Plain(StatusCode::BAD_REQUEST, PARAMS_MISSING));
    }
    let status = api.device.status();
    let current = services::current_app(&status, app)
        .ok_or(Failure::Plain(StatusCode::NOT_FOUND, APP_NOT_FOUND))?;
    let service = current.named(&body)?;
    let action = Action {
        app: current.uuid.clone(),
        verb: verb(service.name.clone()),
        force: body.force,
    };
    drop(status);
    api.device.act(action).await?;
    Ok("OK")
}

async fn act_on_app(
    State(api): State<Api>,
    caller: Caller,
    Path([app]): Path<1>,
    Fields(body): Fields<ForceFlag>,
    verb: Verb,
) -> Result<&'static str, Failure> {
    let app = app_number(&app, &caller, "Missing app id")?;
    services::act_on_app(&api, app, verb, body.force).await?;
    Ok("OK")
}
