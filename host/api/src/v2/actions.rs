//! `POST /v2/applications/:appId/…`: one service, or all of an app (docs/spec/device.md#v2-services).

use http::{Method, StatusCode};
use model::{Action, AppId, ServiceName, Verb};

use crate::action_body::{Forced, ServiceAction};
use crate::answer::{self, Failure};
use crate::app::Api;
use crate::body;
use crate::call::Call;
use crate::operation::{Answer, Operation, schema};
use crate::routes::{Handler, Outcome, Route};
use crate::services::{self, APP_NOT_FOUND, PARAMS_MISSING, Selector};

/// Actions on one service.
const ON_SERVICE: Operation = Operation::answering(&[
    Answer::OK,
    Answer::failed(
        StatusCode::BAD_REQUEST,
        "`appId` is not a number, or the fields contradict each other",
    ),
    Answer::text(StatusCode::BAD_REQUEST, "both fields are missing"),
    Answer::failed(StatusCode::UNAUTHORIZED, "the key is of another app"),
    Answer::text(
        StatusCode::NOT_FOUND,
        "the app or the service does not exist",
    ),
    Answer::LOCKED,
])
.taking(schema::<ServiceAction>);
/// Actions on all services of an app.
const ON_APP: Operation = Operation::answering(&[
    Answer::OK,
    Answer::failed(StatusCode::BAD_REQUEST, "`appId` is not a number"),
    Answer::failed(StatusCode::UNAUTHORIZED, "the key is of another app"),
    Answer::LOCKED,
    Answer::failed(
        StatusCode::SERVICE_UNAVAILABLE,
        "the device does not run the app",
    ),
])
.taking(schema::<Forced>);

pub(crate) const ROUTES: &[Route] = &[
    Route {
        method: Method::POST,
        path: "/v2/applications/:appId/restart-service",
        summary: "removes the container of a service and creates it again",
        operation: ON_SERVICE,
        handler: Handler::Later(|api, call| {
            Box::pin(service(api, call, |name| Verb::Restart(Some(name))))
        }),
    },
    Route {
        method: Method::POST,
        path: "/v2/applications/:appId/stop-service",
        summary: "stops a service and keeps its container",
        operation: ON_SERVICE,
        handler: Handler::Later(|api, call| Box::pin(service(api, call, Verb::Stop))),
    },
    Route {
        method: Method::POST,
        path: "/v2/applications/:appId/start-service",
        summary: "starts a service that was stopped",
        operation: ON_SERVICE,
        handler: Handler::Later(|api, call| Box::pin(service(api, call, Verb::Start))),
    },
    Route {
        method: Method::POST,
        path: "/v2/applications/:appId/restart",
        summary: "removes the containers of an app and creates them again",
        operation: ON_APP,
        handler: Handler::Later(|api, call| Box::pin(app(api, call, Verb::Restart(None)))),
    },
    Route {
        method: Method::POST,
        path: "/v2/applications/:appId/purge",
        summary: "removes all data of an app and creates its containers again",
        operation: ON_APP,
        handler: Handler::Later(|api, call| Box::pin(app(api, call, Verb::Purge))),
    },
];

/// The app of the path, if the key covers it.
fn app_id(call: &Call, invalid: &'static str) -> Result<i64, Failure> {
    let id = lenient::parse_int(call.segment()).filter(|id| *id != 0);
    let id = id.ok_or_else(|| Failure::invalid(invalid))?;
    if call.caller.scope.covers_number(services::app_id(Some(id))) {
        Ok(id)
    } else {
        Err(Failure::out_of_scope())
    }
}

async fn service(api: Api, call: Call, verb: fn(ServiceName) -> Verb) -> Outcome {
    let id = app_id(&call, "Invalid app id");
    let body: ServiceAction = body::action(call.request).await?;
    let id = id?;
    let force = body.force;
    let Some(selector) = Selector::new(body) else {
        return Err(Failure::Plain(StatusCode::BAD_REQUEST, PARAMS_MISSING));
    };
    let status = api.device.status();
    let found = services::app_id(Some(id)).and_then(|id| services::current_app(&status, id));
    let found = found.ok_or(Failure::Plain(StatusCode::NOT_FOUND, APP_NOT_FOUND))?;
    let service = found.named(&selector)?;
    let action = Action {
        app: found.uuid.clone(),
        verb: verb(service.name.clone()),
        force,
    };
    drop(status);
    act(&api, action).await
}

async fn app(api: Api, call: Call, verb: Verb) -> Outcome {
    let id = app_id(&call, "Missing app id");
    let body: Forced = body::action(call.request).await?;
    let id = id?;
    let status = api.device.status();
    let found = services::app_id(Some(id)).and_then(|id: AppId| services::current_app(&status, id));
    let found = found.ok_or_else(|| services::not_current(id))?;
    let action = Action {
        app: found.uuid.clone(),
        verb,
        force: body.force,
    };
    drop(status);
    act(&api, action).await
}

async fn act(api: &Api, action: Action) -> Outcome {
    api.device.act(action).await.map_err(Failure::of_action)?;
    Ok(answer::text(StatusCode::OK, "OK"))
}
