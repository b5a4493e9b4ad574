use serde_json::json;
use supervisor_testing::{Host, Identity, RunningHost, build};

const POLICY: &str = "[plugins.device-info]\ngrants = [\"device\"]";

fn host() -> Host {
    Host::new().plugin(build(env!("CARGO_MANIFEST_DIR")))
}

async fn board() -> RunningHost {
    let identity = Identity {
        uuid: "0123456789abcdef0123456789abcdef".to_owned(),
        name: "kitchen \"7\"".to_owned(),
        device_type: "raspberrypi4-64".to_owned(),
        arch: "aarch64".to_owned(),
    };
    host().policy(POLICY).device(identity).start().await
}

#[tokio::test]
async fn the_device_tells_its_architecture_and_type() {
    let answer = board().await.get("/v2/local/device-info").await;
    assert_eq!(answer.status, 200);
    let kind = &answer.headers["content-type"];
    assert_eq!(kind, "application/json; charset=utf-8");
    let info = json!({ "arch": "aarch64", "deviceType": "raspberrypi4-64" });
    assert_eq!(answer.json(), json!({ "status": "success", "info": info }));
}

#[tokio::test]
async fn the_device_tells_its_name() {
    let answer = board().await.get("/v2/device/name").await;
    let expected = json!({ "status": "success", "deviceName": "kitchen \"7\"" });
    assert_eq!((answer.status.as_u16(), answer.json()), (200, expected));
}

#[tokio::test]
async fn a_device_that_knows_nothing_of_itself_says_unknown_and_local() {
    let host = host().policy(POLICY).start().await;
    let info = host.get("/v2/local/device-info").await.json()["info"].clone();
    assert_eq!(info, json!({ "arch": "unknown", "deviceType": "unknown" }));
    let name = host.get("/v2/device/name").await.json()["deviceName"].clone();
    assert_eq!(name, "local");
}

#[tokio::test]
async fn without_its_grant_it_is_refused_with_the_line_that_is_missing() {
    let Err(refusal) = host().try_start().await else {
        panic!("it was loaded without a grant")
    };
    let refusal = format!("{refusal:#}");
    assert!(refusal.contains("device-info"), "{refusal}");
    assert!(
        refusal.contains("`[plugins.device-info]` the line `grants = [\"device\"]`"),
        "{refusal}"
    );
}
