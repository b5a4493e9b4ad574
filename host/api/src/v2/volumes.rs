//! `GET /v2/cleanup-volumes`: removes volumes that nothing uses (docs/spec/device.md#cleanup-volumes). A `GET` with
//! an effect, as clients know it.

use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;

use crate::answer::{self, Failure};
use crate::app::Api;
use crate::operation::{Answer, Operation, schema};
use crate::routes::{Handler, Outcome, Route};

pub(crate) const ROUTES: &[Route] = &[Route {
    method: Method::GET,
    path: "/v2/cleanup-volumes",
    summary: "removes the volumes that no container uses and no target names",
    operation: Operation::answering(&[
        Answer::json("the volumes have been removed", schema::<CleanedUp>),
        Answer::failed(StatusCode::SERVICE_UNAVAILABLE, "some could not be removed"),
    ]),
    handler: Handler::Later(|api, _| Box::pin(clean_up(api))),
}];

/// That the action is complete.
#[derive(Serialize, JsonSchema)]
struct CleanedUp {
    status: &'static str,
}

async fn clean_up(api: Api) -> Outcome {
    match api.device.clean_up_volumes().await {
        Ok(()) => Ok(answer::json(&CleanedUp { status: "success" })),
        Err(why) => Err(Failure::Refused(StatusCode::SERVICE_UNAVAILABLE, why)),
    }
}
