//! `GET /v3/plan`: its form, and what each caller sees of it.

use device_types::Moment;
use device_types::plan::{
    BlockReason, Blocker, DevicePlan, ImageUser, PlanState, PlanStep, SignedTargets, StepKind,
    StepReason, StepState, UnplannedChange,
};
use model::{AppId, EngineKind};
use serde_json::{Value, json};

use super::router::failed;
use crate::LocalModeAuth;
use crate::fake::{FakeDevice, Fixture, fixture, request};

fn step(number: usize, kind: StepKind) -> PlanStep {
    PlanStep {
        number,
        stage: 1,
        kind,
        state: StepState::Ready,
        reason: StepReason::Missing,
        needs_locks: false,
        app_id: None,
        app_uuid: None,
        service: None,
        image: None,
        engine: None,
        container_id: None,
        name: None,
        commit: None,
        os_version: None,
        progress: None,
        users: Vec::new(),
        blocked_by: Vec::new(),
    }
}

fn blocked(by: Blocker) -> Vec<BlockReason> {
    let message = "a reason".to_owned();
    vec![BlockReason { by, message }]
}

/// Returns a pull for two apps, with one service each, and an engine that is missing.
fn planned() -> Fixture {
    let user = |app_id, service: &str| ImageUser {
        app_id: AppId(app_id),
        service: service.parse().unwrap(),
    };
    let plan = DevicePlan {
        state: PlanState::Applying,
        local_mode: true,
        steps: vec![
            PlanStep {
                state: StepState::Running,
                image: "registry/web:2".parse().ok(),
                engine: Some(EngineKind::Wasm),
                progress: Some(40),
                users: vec![user(1, "web"), user(2, "api")],
                ..step(1, StepKind::PullImage)
            },
            PlanStep {
                stage: 2,
                state: StepState::Blocked,
                reason: StepReason::ImageChanged,
                needs_locks: true,
                app_id: Some(AppId(2)),
                service: "api".parse().ok(),
                blocked_by: blocked(Blocker::BackOff {
                    until: Moment(1_700_000_000_123),
                    failures: 3,
                    reason: "secret".to_owned(),
                }),
                ..step(2, StepKind::RemoveService)
            },
            PlanStep {
                app_id: Some(AppId(1)),
                app_uuid: "shop-uuid".parse().ok(),
                commit: "c1".parse().ok(),
                reason: StepReason::Reached,
                ..step(3, StepKind::RecordRelease)
            },
            step(4, StepKind::RemoveImage),
        ],
        unplanned: vec![
            UnplannedChange {
                app_id: Some(AppId(2)),
                app_uuid: None,
                service: None,
                blocked_by: blocked(Blocker::NotOurs),
            },
            UnplannedChange {
                app_id: None,
                app_uuid: None,
                service: None,
                blocked_by: blocked(Blocker::EngineSilent {
                    engine: EngineKind::Docker,
                    reason: "secret".to_owned(),
                }),
            },
        ],
        cut_short: false,
        signed_targets: Some(SignedTargets {
            refused: Some(vec!["a reason".to_owned()]),
        }),
    };
    let device = FakeDevice {
        plan: Ok(plan),
        ..FakeDevice::default()
    };
    fixture(device, LocalModeAuth::default())
}

#[tokio::test]
async fn the_plan_is_returned_step_by_step() {
    let device = planned();
    assert_eq!(
        device.json("/v3/plan").await,
        json!({
            "status": "success",
            "state": "applying",
            "localMode": true,
            "steps": [
                {
                    "number": 1, "stage": 1, "kind": "pull-image", "state": "running",
                    "reason": "missing", "needsLocks": false,
                    "image": "registry/web:2", "engine": "wasm", "progress": 40,
                    "users": [{"appId": 1, "service": "web"}, {"appId": 2, "service": "api"}],
                    "blockedBy": [],
                },
                {
                    "number": 2, "stage": 2, "kind": "remove-service", "state": "blocked",
                    "reason": "image-changed", "needsLocks": true, "appId": 2, "service": "api",
                    "blockedBy": [{
                        "kind": "back-off", "until": "2023-11-14T22:13:20.123Z", "failures": 3,
                        "message": "a reason",
                    }],
                },
                {
                    "number": 3, "stage": 1, "kind": "record-release", "state": "ready",
                    "reason": "reached", "needsLocks": false, "appId": 1, "appUuid": "shop-uuid",
                    "commit": "c1", "blockedBy": [],
                },
                {
                    "number": 4, "stage": 1, "kind": "remove-image", "state": "ready",
                    "reason": "missing", "needsLocks": false, "blockedBy": [],
                },
            ],
            "unplanned": [
                {"appId": 2, "blockedBy": [{"kind": "not-ours", "message": "a reason"}]},
                {"blockedBy": [
                    {"kind": "engine-silent", "engine": "docker", "message": "a reason"},
                ]},
            ],
            "cutShort": false,
            "signedTargets": {"refused": ["a reason"]},
        })
    );
}

#[tokio::test]
async fn a_key_of_an_app_sees_the_steps_of_that_app_alone() {
    let device = planned();
    let answer = device
        .ask(request("GET", "/v3/plan", &device.shop_key))
        .await;
    let plan: Value = serde_json::from_str(&answer.body).unwrap();
    let steps = plan["steps"].as_array().unwrap();
    let numbers: Vec<&Value> = steps.iter().map(|step| &step["number"]).collect();
    assert_eq!(numbers, [1, 3]);
    assert_eq!(
        steps[0]["users"],
        json!([{"appId": 1, "service": "web"}]),
        "others use the image too"
    );
    // Blockers of the whole device concern every app.
    assert_eq!(plan["unplanned"].as_array().map(Vec::len), Some(1));
    // So does the fact that a target was refused; but the reasons may concern other apps.
    assert_eq!(plan["signedTargets"], json!({"refused": []}));
}

#[tokio::test]
async fn a_plan_that_cannot_be_had_is_a_503() {
    let device = fixture(FakeDevice::default(), LocalModeAuth::default());
    assert_eq!(
        device.get("/v3/plan").await,
        failed(503, "the supervisor is stopping")
    );
}
