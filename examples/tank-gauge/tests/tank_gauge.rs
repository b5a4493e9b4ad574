use serde_json::json;
use supervisor_testing::{Host, build};

#[tokio::test]
async fn readings_become_metrics_and_the_latest_one_is_reported() {
    let host = Host::new()
        .plugin(build(env!("CARGO_MANIFEST_DIR")))
        .policy("[plugins.tank-gauge]\ngrants = [\"metrics\", \"report\"]")
        .start()
        .await;
    assert_eq!(host.fields("tank-gauge").await, []);
    for (level, status) in [(0.25, 200), (0.5, 200), (1.5, 400)] {
        let answer = host
            .post("/v3/tanks/north", json!({ "level": level }))
            .await;
        assert_eq!(answer.status, status, "{level}");
    }
    assert_eq!(
        host.metrics("tank-gauge").await,
        [
            ("level{tank=\"north\"}".to_owned(), 0.5),
            ("readings_total{tank=\"north\"}".to_owned(), 2.0),
        ]
    );
    assert_eq!(
        host.fields("tank-gauge").await,
        [
            ("last_level".to_owned(), json!(50), Some("%".to_owned())),
            ("last_tank".to_owned(), json!("north"), None),
        ]
    );
}
