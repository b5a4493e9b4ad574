//! `POST /v1/reboot` and `POST /v1/shutdown` (docs/spec/device.md#v1-power). Their failures have a shape of their
//! own.

use http::{Method, StatusCode};
use model::{ActionError, PowerAction};

use super::actions::DataAndError;
use crate::action_body::Forced;
use crate::answer;
use crate::app::Api;
use crate::body;
use crate::call::Call;
use crate::operation::{Answer, Operation, schema};
use crate::routes::{Handler, Outcome, Route};

/// The answers, which both operations share.
const OPERATION: Operation = Operation::answering(&[
    Answer::json_with(
        StatusCode::ACCEPTED,
        "the device is about to go down",
        schema::<DataAndError>,
    ),
    Answer::json_with(
        StatusCode::LOCKED,
        "an update lock is held and `force` is not given",
        schema::<DataAndError>,
    ),
    Answer::json_with(
        StatusCode::INTERNAL_SERVER_ERROR,
        "the request cannot be passed on to the host",
        schema::<DataAndError>,
    ),
])
.taking(schema::<Forced>);

pub(crate) const ROUTES: &[Route] = &[
    Route {
        method: Method::POST,
        path: "/v1/reboot",
        summary: "stops all services and reboots the device",
        operation: OPERATION,
        handler: Handler::Later(|api, call| Box::pin(power(api, call, PowerAction::Reboot))),
    },
    Route {
        method: Method::POST,
        path: "/v1/shutdown",
        summary: "stops all services and switches the device off",
        operation: OPERATION,
        handler: Handler::Later(|api, call| Box::pin(power(api, call, PowerAction::PowerOff))),
    },
];

async fn power(api: Api, call: Call, action: PowerAction) -> Outcome {
    let Forced { force } = body::action(call.request).await?;
    let (status, data, error) = match api.device.power(action, force).await {
        Ok(()) => (StatusCode::ACCEPTED, "OK", String::new()),
        Err(ActionError::Locked(why)) => (StatusCode::LOCKED, "", why),
        Err(ActionError::Failed(why)) => (StatusCode::INTERNAL_SERVER_ERROR, "", why),
    };
    Ok(answer::json_with(
        status,
        &DataAndError {
            data,
            error: &error,
        },
    ))
}
