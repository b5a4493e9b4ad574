use serde_json::json;
use supervisor_testing::{Host, RunningHost, build};

async fn host(section: &str) -> RunningHost {
    let folder = env!("CARGO_MANIFEST_DIR");
    Host::new()
        .plugin(build(format!("{folder}/../acme-rails")))
        .plugin(build(folder))
        .policy(format!(
            "[plugins.acme-rails]\ngrants = [\"store\"]\n[plugins.rail-panel]\n{section}"
        ))
        .start()
        .await
}

const GRANTED: &str = "grants = [\"actions\"]\nactions = [\"acme-rails/list\", \"acme-rails/set\"]";

#[tokio::test]
async fn one_plugin_has_another_do_an_action_of_its_own() {
    let host = host(GRANTED).await;
    let answer = host.post("/v3/rail-panel/5v/on", json!({})).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.json(), json!({ "switchedBy": "rail-panel" }));
    let rails = host.get("/v3/rail-panel").await.json();
    let expected = json!([{ "name": "3v3", "on": false }, { "name": "5v", "on": true }]);
    assert_eq!(rails, expected);
    let refused = host.post("/v3/rail-panel/12v/on", json!({})).await;
    assert_eq!(refused.status, 409);
    assert!(
        refused.text().contains("there is no rail `12v`"),
        "{}",
        refused.text()
    );
}

#[tokio::test]
async fn an_action_that_the_policy_does_not_name_is_not_done() {
    let host = host("grants = [\"actions\"]\nactions = [\"acme-rails/list\"]").await;
    assert_eq!(host.get("/v3/rail-panel").await.status, 200);
    let answer = host.post("/v3/rail-panel/5v/on", json!({})).await;
    assert_eq!(answer.status, 500);
    let expected =
        "the policy does not name `acme-rails/set` in `actions` of the plugin `rail-panel`";
    assert!(answer.text().contains(expected), "{}", answer.text());
    let rails = host.get("/v3/rail-panel").await.json();
    assert_eq!(rails[1]["on"], false, "{rails}");
}

#[tokio::test]
async fn without_the_plugin_that_does_it_an_action_is_unavailable() {
    let host = Host::new()
        .plugin(build(env!("CARGO_MANIFEST_DIR")))
        .policy(format!("[plugins.rail-panel]\n{GRANTED}"))
        .start()
        .await;
    let answer = host.get("/v3/rail-panel").await;
    assert_eq!(answer.status, 503);
    let expected = "no plugin of this device provides `acme-rails/list`";
    assert!(answer.text().contains(expected), "{}", answer.text());
}
