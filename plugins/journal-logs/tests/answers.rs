//! The arguments that the plugin passes to the journal command, which is replaced by a program that
//! prints them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use serde_json::{Value, json};
use supervisor_testing::{Host, RunningHost, build};

async fn host() -> RunningHost {
    let program = "../../host/os/tests/programs/print-arguments";
    Host::new()
        .plugin(build(env!("CARGO_MANIFEST_DIR")))
        .policy("[plugins.journal-logs]\ngrants = [\"journal\"]")
        .journal_program(Path::new(env!("CARGO_MANIFEST_DIR")).join(program))
        .start()
        .await
}

async fn arguments(host: &RunningHost, body: Value) -> Vec<String> {
    let answer = host.post("/v2/journal-logs", body).await;
    assert_eq!(answer.status, 200);
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    let own_root = format!("--root={}", host.root().display());
    let mut lines = text.lines().map(str::to_owned);
    assert_eq!(lines.next(), Some(own_root));
    lines.collect()
}

#[tokio::test]
async fn each_field_is_an_option_and_the_default_format_is_short() {
    let host = host().await;
    assert_eq!(arguments(&host, json!({})).await, ["--output=short"]);
    let all = json!({
        "all": true, "follow": true, "count": 3, "unit": "web.service", "containerId": "0a1b",
        "since": "yesterday", "until": "now", "format": "json", "unknown": 1,
    });
    assert_eq!(
        arguments(&host, all).await,
        [
            "--all",
            "--follow",
            "--unit=web.service",
            "--identifier=0a1b",
            "--lines=3",
            "--since=yesterday",
            "--until=now",
            "--output=json",
        ]
    );
}

#[tokio::test]
async fn an_invalid_option_is_refused_by_the_fields_name() {
    let host = host().await;
    for (body, field) in [
        (json!({"containerId": "--file=x"}), "containerId"),
        (json!({"unit": 1}), "unit"),
        (json!({"count": "x"}), "count"),
        (json!({"follow": []}), "follow"),
    ] {
        let answer = host.post("/v2/journal-logs", body).await;
        assert_eq!(answer.status, 400);
        let failure = answer.json();
        assert_eq!(failure["status"], "failed");
        let message = failure["message"].as_str().unwrap();
        assert!(message.contains(&format!("`{field}`")), "{message}");
    }
    let answer = host.get("/v2/journal-logs").await;
    assert_eq!(answer.status, 405);
}
