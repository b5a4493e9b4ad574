use plugin_test_host::{EmbeddedHost, Host, build};
use serde_json::json;

const POLICY: &str = "[plugins.led-blink]\ngrants = [\"led\"]\n[plugins.find-me]\ngrants = [\"device\", \"identify\"]";

fn stock() -> std::path::PathBuf {
    build(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../plugins/led-blink"
    ))
}

#[tokio::test]
async fn the_stock_plugin_shows_the_device_for_every_caller() {
    let host = Host::new()
        .plugin(stock())
        .plugin(build(env!("CARGO_MANIFEST_DIR")))
        .policy(POLICY)
        .led("ACT", 7, 255);
    let host = EmbeddedHost::new(host).start().await;
    // From now on the clock jumps ahead whenever all tasks are idle.
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    let answer = host.post("/v3/find-me", json!({})).await;
    assert_eq!(
        (answer.status.as_u16(), answer.json()),
        (200, json!({"shown": "local"}))
    );
    assert!(begun.elapsed().as_secs() >= 15);
    // The LED is released at the same time as the answer is sent, not earlier.
    host.led_becomes("ACT", 7).await;
    host.called("led-blink", 1).await;
}

#[tokio::test]
async fn without_a_plugin_that_shows_the_device_it_says_so() {
    let host = Host::new()
        .plugin(build(env!("CARGO_MANIFEST_DIR")))
        .policy(POLICY)
        .start()
        .await;
    let answer = host.post("/v3/find-me", json!({})).await;
    assert_eq!(answer.status, 500);
    assert_eq!(
        answer.json()["message"],
        "no plugin of this device provides `identify`"
    );
}

#[tokio::test]
async fn without_its_grant_it_is_refused_with_the_line_that_grants_it() {
    let refused = Host::new()
        .plugin(build(env!("CARGO_MANIFEST_DIR")))
        .policy("[plugins.find-me]\ngrants = [\"device\"]")
        .try_start()
        .await
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default();
    assert!(
        refused.contains("`[plugins.find-me]` the line `grants = [\"device\", \"identify\"]`"),
        "{refused}"
    );
}
