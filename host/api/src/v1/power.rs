//! `POST /v1/reboot` and `POST /v1/shutdown` (docs/spec/device.md#v1-power). Their failures have a form of their own.

use axum::extract::State;
use http::StatusCode;
use model::{ActionError, PowerAction};

use super::actions::DataAndError;
use crate::action_body::ForceFlag;
use crate::answer::Json;
use crate::body::Fields;
use crate::operation::{Answer, Content, schema};
use crate::route::Route;
use crate::state::Api;

pub(crate) fn routes() -> Vec<Route> {
    let route = |path, action| {
        let answer =
            |status, about| Answer::new(status, about, Content::Json(schema::<DataAndError>));
        Route::post(path, move |api, body| power(api, body, action))
            .taking::<ForceFlag>()
            .answering([
                answer(202, "the device is about to go down"),
                answer(423, "an update lock is held and `force` is not given"),
                answer(500, "the request cannot be passed on to the host"),
            ])
    };
    vec![
        route("/v1/reboot", PowerAction::Reboot)
            .summary("stops all services and reboots the device"),
        route("/v1/shutdown", PowerAction::PowerOff)
            .summary("stops all services and switches the device off"),
    ]
}

async fn power(
    State(api): State<Api>,
    Fields(body): Fields<ForceFlag>,
    action: PowerAction,
) -> (StatusCode, Json<DataAndError>) {
    let (status, data, error) = match api.device.power(action, body.force).await {
        Ok(()) => (StatusCode::ACCEPTED, "OK", String::new()),
        Err(ActionError::Locked(why)) => (StatusCode::LOCKED, "", why),
        Err(ActionError::Failed(why)) => (StatusCode::INTERNAL_SERVER_ERROR, "", why),
    };
    (status, Json(DataAndError { data, error }))
}
