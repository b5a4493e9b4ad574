use std::time::Duration;

use serde_json::{Value, json};
use supervisor_testing::{
    Host, PendingUpdate, PluginEvent, RunningHost, ServiceChange, TargetProgress, build,
};

const ALL: &str =
    "events = [\"start\", \"schedule\", \"services\", \"target\", \"connection\", \"update-gate\"]";

fn host(policy: &str) -> Host {
    Host::new()
        .plugin(build(env!("CARGO_MANIFEST_DIR")))
        .policy(format!(
            "[plugins.update-hold]\ngrants = [\"store\"]\n{policy}"
        ))
}

fn update() -> PendingUpdate {
    PendingUpdate {
        app_id: 7,
        app_uuid: "0123456789abcdef0123456789abcdef".to_owned(),
        services: vec!["press".to_owned()],
        running_commit: Some("c1".to_owned()),
        target_commit: Some("c2".to_owned()),
    }
}

async fn hold(host: &RunningHost) {
    let body = json!({ "reason": "the press is running", "seconds": 600 }).to_string();
    let request = http::Request::put("/v3/update-hold").body(body);
    assert_eq!(host.send(request).await.status, 200);
}

/// Waits until the plugin has been called for this event.
async fn until_remembered(host: &RunningHost, expected: &str) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    loop {
        let state = host.get("/v3/update-hold").await.json();
        let events: Vec<Value> = state["events"].as_array().cloned().unwrap_or_default();
        if events.iter().any(|event| event == expected) {
            return;
        }
        assert!(
            tokio::time::Instant::now() < deadline,
            "no `{expected}` in {state}"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn an_update_waits_while_somebody_holds_it() {
    let host = host(ALL).start().await;
    assert_eq!(host.postponement(&update()).await, None);
    hold(&host).await;
    let postponement = host.postponement(&update()).await.unwrap();
    assert_eq!(
        (
            &*postponement.plugin,
            &*postponement.reason,
            postponement.delay.as_secs()
        ),
        ("update-hold", "the press is running", 10)
    );
    let request = http::Request::delete("/v3/update-hold").body("");
    assert_eq!(host.send(request).await.status, 200);
    assert_eq!(host.postponement(&update()).await, None);
    until_remembered(&host, "update-gate press").await;
}

#[tokio::test]
async fn an_update_waits_no_longer_than_the_policy_allows() {
    let host = host(&format!("{ALL}\nhold_minutes = 0")).start().await;
    hold(&host).await;
    assert_eq!(host.postponement(&update()).await, None);
}

#[tokio::test]
async fn the_plugin_is_called_for_what_happens() {
    let host = host(ALL).start().await;
    until_remembered(&host, "start, first of this boot: false").await;
    let word = |word: &str| Some(word.to_owned());
    host.publish(&PluginEvent::Services(vec![ServiceChange {
        app_id: 7,
        service: "press".to_owned(),
        status: word("Stopping"),
        before: word("Running"),
    }]))
    .await;
    host.publish(&PluginEvent::Target(TargetProgress::Applying))
        .await;
    host.publish(&PluginEvent::Connection(false)).await;
    for expected in [
        "services press Running -> Stopping",
        "target Applying",
        "connection false",
    ] {
        until_remembered(&host, expected).await;
    }
}

#[tokio::test]
async fn events_that_the_policy_does_not_give_are_named() {
    let error = host("events = [\"start\"]")
        .try_start()
        .await
        .err()
        .unwrap();
    let error = format!("{error:#}");
    let expected = "asks for the events `start`, `schedule`, `services`, `target`, `connection`, `update-gate`, which the policy";
    assert!(error.contains(expected), "{error}");
    let line = "the line `events = [\"start\", \"schedule\", \"services\", \"target\", \"connection\", \"update-gate\"]`";
    assert!(error.contains(line), "{error}");
}
