//! `/v2/local/target-state` and `/v2/local/logs`: the endpoints with which the command line tool operates a device in
//! local mode (docs/spec/device.md#target-local, docs/spec/device.md#local-logs). The other endpoints in `/v2/local/`
//! belong to plugins.

use axum::extract::State;
use device_types::LogEvent;
use model::SetTargetError;
use schemars::JsonSchema;
use serde::{Deserialize as _, Serialize};
use serde_json::{Map, Value};

use crate::action_body::ForceFlag;
use crate::answer::{Failure, Json};
use crate::body::Document;
use crate::caller::{Caller, KeyScope};
use crate::operation::{Answer, Content, schema};
use crate::route::Route;
use crate::state::Api;
use crate::v2::{local_logs, local_target};

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v2/local/target-state", target)
            .summary("the target that was set over this API")
            .answering([Answer::json("the target", schema::<LocalTarget>)]),
        Route::post("/v2/local/target-state", set_target)
            .summary("sets the target of a device in local mode and starts to apply it")
            .taking_document(local_target::schema)
            .answering([
                Answer::json(
                    "the target is accepted, and about to be applied",
                    schema::<TargetTaken>,
                ),
                Answer::failed(
                    400,
                    "the target is not valid or names no apps, or the device is not in local mode",
                ),
            ]),
        Route::get("/v2/local/logs", local_logs::logs)
            .summary("what services and the supervisor print from now on, one JSON object per line")
            .answering([
                Answer::new(
                    200,
                    "the lines from now on",
                    Content::Lines(schema::<LogEvent>),
                ),
                Answer::failed(503, "too many clients are already reading the log"),
            ]),
    ]
}

/// The target of local mode.
#[derive(Serialize, JsonSchema)]
struct LocalTarget {
    status: &'static str,
    /// `{ "local": … }`.
    #[schemars(schema_with = "local_target::schema")]
    state: Value,
}

/// The target was accepted.
#[derive(Serialize, JsonSchema)]
struct TargetTaken {
    status: &'static str,
    message: &'static str,
    /// One sentence for each part of the target that will not be applied.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

async fn target(State(api): State<Api>, caller: Caller) -> Json<LocalTarget> {
    Json(LocalTarget {
        status: "success",
        state: seen_by(caller.scope, api.device.local_target()),
    })
}

/// Returns whether a target lists its apps, even if the list is empty. If `local` is not an object, the parser reports
/// that.
fn names_apps(target: &Map<String, Value>) -> bool {
    match target.get("local") {
        None => false,
        Some(Value::Object(local)) => local.contains_key("apps"),
        Some(_) => true,
    }
}

/// Removes the apps that a caller's key does not cover: environments contain secrets.
fn seen_by(scope: KeyScope, mut target: Value) -> Value {
    if let KeyScope::App(own) = scope
        && let Some(Value::Object(apps)) = target.pointer_mut("/local/apps")
    {
        let own = own.to_string();
        apps.retain(|app, _| *app == own);
    }
    target
}

async fn set_target(
    State(api): State<Api>,
    // A body of another type would read as a target without apps, and end every service.
    Document {
        fields: target,
        // Held until the target is stored.
        turn: _turn,
    }: Document,
) -> Result<Json<TargetTaken>, Failure> {
    if !names_apps(&target) {
        return Err(Failure::invalid(
            "Invalid target state.\n`local.apps` is missing: to remove all services send `{\"local\": {\"apps\": {}}}`",
        ));
    }
    // The target is passed on with all of its fields: reading it as a type too would take its memory twice.
    let forced = ForceFlag::deserialize(&target);
    let ForceFlag { force } = forced.map_err(|error| Failure::invalid(error.to_string()))?;
    match api
        .device
        .set_local_target(Value::Object(target), force)
        .await
    {
        Ok(warnings) => Ok(Json(TargetTaken {
            status: "success",
            message: "OK",
            warnings,
        })),
        Err(SetTargetError::Store(cause)) => Err(Failure::Internal {
            doing: "store the target state",
            cause: cause.into(),
        }),
        Err(refused) => Err(Failure::invalid(refused.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use model::AppId;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_key_of_an_app_shows_the_target_of_that_app_alone() {
        let all = json!({"local": {"name": "a", "apps": {"1": {"a": 1}, "12": {}, "2": {}}}});
        assert_eq!(seen_by(KeyScope::All, all.clone()), all);
        assert_eq!(
            seen_by(KeyScope::App(AppId(1)), all.clone()),
            json!({"local": {"name": "a", "apps": {"1": {"a": 1}}}})
        );
        assert_eq!(
            seen_by(KeyScope::App(AppId(3)), all),
            json!({"local": {"name": "a", "apps": {}}})
        );
    }
}
