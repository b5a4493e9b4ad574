//! `GET /metrics` of a working device.

use serde_json::json;
use tests::{Supervisor, guest, service, target};

fn value(page: &str, sample: &str) -> f64 {
    let line = page.lines().find_map(|line| {
        let (name, value) = line.rsplit_once(' ')?;
        (name == sample).then_some(value)
    });
    let line = line.unwrap_or_else(|| panic!("no `{sample}` in:\n{page}"));
    line.parse().unwrap()
}

#[tokio::test]
async fn a_device_shows_its_counters_to_callers_with_its_key() {
    let device = Supervisor::on_wasm().start().await;
    let without = device
        .send(device.request_without_key("GET", "/metrics"))
        .await;
    assert_eq!(
        (without.status, without.text.as_str()),
        (401, "Unauthorized")
    );

    let server = service("web", &guest("hello-server"), &json!({}));
    device.set_target(&target(7, &[server])).await;
    device.until_applied().await;
    for _ in 0..3 {
        assert_eq!(device.get("/v2/device/name").await.status, 200);
    }
    let _reader = device.read_events().await;
    // Prometheus may send the key in both ways.
    let path = format!("/metrics?apikey={}", device.key());
    let answer = device.send(device.request_without_key("GET", &path)).await;
    assert_eq!(
        (answer.status, answer.content_type.as_deref()),
        (200, Some("text/plain; version=0.0.4; charset=utf-8"))
    );
    let page = &answer.text;
    let name = r#"method="GET",route="/v2/device/name""#;
    for (sample, least) in [
        (
            &*format!("supervisor_http_requests_total{{{name},status=\"200\"}}"),
            3.0,
        ),
        (
            &*format!("supervisor_http_request_duration_seconds_count{{{name}}}"),
            3.0,
        ),
        (
            r#"supervisor_plugin_calls_total{plugin="device-info"}"#,
            3.0,
        ),
        (
            r#"supervisor_plugin_call_seconds_total{plugin="device-info"}"#,
            0.000_001,
        ),
        (r#"supervisor_services{status="Running"}"#, 1.0),
        ("supervisor_reconcile_passes_total", 2.0),
        ("supervisor_downloads_total", 1.0),
        ("supervisor_last_success_timestamp_seconds", 1.7e9),
        ("process_resident_memory_bytes", 1e6),
        ("supervisor_store_bytes", 1e4),
        (r#"supervisor_stream_readers{stream="events"}"#, 1.0),
    ] {
        assert!(value(page, sample) >= least, "{sample}: {page}");
    }
    assert_eq!(
        value(
            page,
            r#"supervisor_plugin_faults_total{plugin="device-info"}"#
        ),
        0.0
    );
    assert_eq!(value(page, "supervisor_update_locks_held"), 0.0);
}
