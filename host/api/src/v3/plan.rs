//! `GET /v3/plan`: what would change, in order, and what blocks each step. Asking changes nothing.

use device_types::DevicePlan;
use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;

use crate::answer::{self, Failure};
use crate::app::Api;
use crate::auth::Scope;
use crate::call::Call;
use crate::operation::{Answer, Operation, schema};
use crate::routes::{Handler, Outcome, Route};

pub(crate) const ROUTES: &[Route] = &[Route {
    method: Method::GET,
    path: "/v3/plan",
    summary: "what would change, in order, and what blocks each step",
    operation: Operation::answering(&[Answer::json("the plan", schema::<PlanAnswer>)]),
    handler: Handler::Later(|api, call| Box::pin(plan(api, call))),
}];

/// Limits `plan` to what `scope` covers. An app's key does not see what belongs to no app.
fn limit_to(plan: &mut DevicePlan, scope: Scope) {
    let Scope::App(own) = scope else { return };
    plan.steps.retain_mut(|step| {
        step.users.retain(|user| user.app_id == own);
        step.app_id == Some(own) || !step.users.is_empty()
    });
    if let Some(signed) = &mut plan.signed_targets
        && let Some(refused) = &mut signed.refused
    {
        refused.clear();
    }
    // What concerns the device concerns every app on it.
    plan.unplanned
        .retain(|left| left.app_id.is_none_or(|app| app == own));
}

/// The plan of the device.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PlanAnswer {
    status: &'static str,
    #[serde(flatten)]
    plan: DevicePlan,
}

async fn plan(api: Api, call: Call) -> Outcome {
    let plan = api.device.plan().await;
    let mut plan = plan.map_err(|why| Failure::Refused(StatusCode::SERVICE_UNAVAILABLE, why))?;
    limit_to(&mut plan, call.caller.scope);
    Ok(answer::json(&PlanAnswer {
        status: "success",
        plan,
    }))
}
