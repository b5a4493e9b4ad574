use serde_json::json;
use supervisor_testing::{Host, build};

#[tokio::test]
async fn readings_become_metrics() {
    let host = Host::new()
        .plugin(build(env!("CARGO_MANIFEST_DIR")))
        .policy("[plugins.tank-gauge]\ngrants = [\"metrics\"]")
        .start()
        .await;
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
}
