use serde_json::json;
use supervisor_testing::{Host, build};

fn host(routes: &str) -> Host {
    let state = json!({ "appState": "applied", "containers": [{ "serviceName": "press", "status": "Running" }] });
    Host::new()
        .plugin(build(env!("CARGO_MANIFEST_DIR")))
        .policy(format!(
            "[plugins.site-panel]\ngrants = [\"api\"]\napi = [{routes}]\n"
        ))
        .api_answer("GET /v2/state/status", 200, state.to_string())
        .api_answer("POST /v1/restart", 423, "the update lock is held")
}

#[tokio::test]
async fn the_state_is_shown_in_few_words() {
    let host = host("\"GET /v2/state/status\"").start().await;
    let panel = host.get("/v3/site-panel").await;
    let expected = json!({ "state": "applied", "services": ["press Running"] });
    assert_eq!(panel.json(), expected, "{}", panel.text());
}

#[tokio::test]
async fn the_panel_passes_on_refusals_of_the_device() {
    let host = host("\"POST /v1/restart\"").start().await;
    let request = http::Request::post("/v3/site-panel/7/restart").body("");
    let refused = host.send(request).await;
    assert_eq!(refused.status, 423);
    assert!(
        refused.text().contains("the update lock is held"),
        "{}",
        refused.text()
    );
    // Requests that the policy does not grant are not even sent.
    let panel = host.get("/v3/site-panel").await;
    assert_eq!(panel.status, 500);
    let expected = "the policy does not name `GET /v2/state/status` in `api`";
    assert!(panel.text().contains(expected), "{}", panel.text());
}
