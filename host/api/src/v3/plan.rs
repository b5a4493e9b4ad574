//! `GET /v3/plan`: what would change, in order, and what blocks each step. A request changes
//! nothing.

use axum::extract::State;
use device_types::DevicePlan;
use schemars::JsonSchema;
use serde::Serialize;

use crate::answer::{Failure, Json};
use crate::caller::{Caller, KeyScope};
use crate::operation::{Answer, schema};
use crate::route::Route;
use crate::state::Api;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v3/plan", plan)
            .summary("what would change, in order, and what blocks each step")
            .answering([Answer::json("the plan", schema::<PlanAnswer>)]),
    ]
}

/// Limits `plan` to what `scope` covers. With an app's key, steps that belong to no app are not
/// shown.
fn limit_to(plan: &mut DevicePlan, scope: KeyScope) {
    let KeyScope::App(own) = scope else { return };
    plan.steps.retain_mut(|step| {
        step.users.retain(|user| user.app_id == own);
        step.app_id == Some(own) || !step.users.is_empty()
    });
    if let Some(signed) = &mut plan.signed_targets
        && let Some(refused) = &mut signed.refused
    {
        refused.clear();
    }
    // Blockers of the whole device concern every app on it.
    plan.unplanned
        .retain(|step| step.app_id.is_none_or(|app| app == own));
}

/// The plan of the device.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PlanAnswer {
    status: &'static str,
    #[serde(flatten)]
    plan: DevicePlan,
}

async fn plan(State(api): State<Api>, caller: Caller) -> Result<Json<PlanAnswer>, Failure> {
    let plan = api.device.plan().await;
    let mut plan = plan.map_err(Failure::unavailable)?;
    limit_to(&mut plan, caller.scope);
    Ok(Json(PlanAnswer {
        status: "success",
        plan,
    }))
}
