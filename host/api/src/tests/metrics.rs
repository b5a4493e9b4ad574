//! `GET /metrics`: what is counted, and under which names.

use device_types::{Moment, ReconcilerStats};
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::LocalModeAuth;
use crate::fake::{FakeDevice, Fixture, fixture, request, two_apps};

fn device() -> Fixture {
    let device = FakeDevice {
        stats: ReconcilerStats {
            passes: 5,
            step_failures: 2,
            last_reached: Some(Moment(1_700_000_000_123)),
            downloads: 3,
            download_failures: 1,
            downloads_running: 1,
            locks_held: 4,
        },
        ..FakeDevice::default()
    };
    let device = fixture(device, LocalModeAuth::default());
    *device.device.status.lock().unwrap() = Arc::new(two_apps());
    device
}

async fn page(device: &Fixture) -> String {
    let answer = device.get("/metrics").await;
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.content_type.as_deref(),
        Some("text/plain; version=0.0.4; charset=utf-8")
    );
    answer.body
}

fn has(page: &str, line: &str) {
    assert!(
        page.lines().any(|found| found == line),
        "no `{line}` in:\n{page}"
    );
}

#[tokio::test]
async fn requests_are_counted_by_the_pattern_of_their_route_and_never_by_their_path() {
    let device = device();
    for path in [
        "/ping",
        "/PING/",
        "/v1/healthy",
        "/v2/applications/1/state",
        "/v2/applications/2/state/",
        "/v2/applications/77/state",
        "/v3/greet",
        "/nothing/here",
    ] {
        device.get(path).await;
    }
    device.ask(request("HEAD", "/ping", "")).await;
    device.ask(request("GET", "/v1/device", "wrong")).await;
    device
        .ask(request("PATCH", "/v1/device", &device.key))
        .await;
    let page = page(&device).await;
    let requests = "supervisor_http_requests_total";
    for (labels, count) in [
        (r#"method="GET",route="/ping",status="200""#, 3),
        (r#"method="GET",route="/v1/healthy",status="200""#, 1),
        (
            r#"method="GET",route="/v2/applications/:appId/state",status="200""#,
            2,
        ),
        (
            r#"method="GET",route="/v2/applications/:appId/state",status="409""#,
            1,
        ),
        (r#"method="GET",route="/v3/greet",status="200""#, 1),
        (r#"method="PATCH",route="/v1/device",status="200""#, 1),
        (r#"method="other",route="other",status="404""#, 1),
        (r#"method="other",route="other",status="401""#, 1),
    ] {
        has(&page, &format!("{requests}{{{labels}}} {count}"));
    }
    // Numbers may contain any digits; labels may not.
    let mut counted = page.lines().filter(|line| line.starts_with(requests));
    assert!(
        counted.all(|line| !line.contains("77") && !line.contains("nothing")),
        "{page}"
    );
    let times = "supervisor_http_request_duration_seconds";
    let ping = r#"method="GET",route="/ping""#;
    has(&page, &format!("{times}_bucket{{{ping},le=\"+Inf\"}} 3"));
    has(&page, &format!("{times}_count{{{ping}}} 3"));
}

#[tokio::test]
async fn the_device_its_services_and_plugins_are_counted() {
    let device = device();
    let page = page(&device).await;
    for line in [
        "supervisor_reconcile_passes_total 5",
        "supervisor_step_failures_total 2",
        "supervisor_last_success_timestamp_seconds 1700000000.123",
        "supervisor_downloads_total 3",
        "supervisor_download_failures_total 1",
        "supervisor_downloads_running 1",
        "supervisor_update_locks_held 4",
        r#"supervisor_services{status="Running"} 1"#,
        r#"supervisor_services{status="exited"} 1"#,
        r#"supervisor_plugin_calls_total{plugin="greet"} 3"#,
        r#"supervisor_plugin_faults_total{plugin="greet"} 1"#,
        r#"supervisor_plugin_call_seconds_total{plugin="greet"} 0.002"#,
        r#"supervisor_stream_readers{stream="events"} 0"#,
    ] {
        has(&page, line);
    }
    for name in [
        "supervisor_build_info{version=",
        "supervisor_uptime_seconds ",
        "process_resident_memory_bytes ",
        "supervisor_anonymous_memory_bytes ",
        "supervisor_store_bytes ",
    ] {
        let line = page.lines().find(|line| line.starts_with(name));
        let value = line.unwrap_or_else(|| panic!("no {name}: {page}"));
        assert!(!value.ends_with(" 0"), "{value}");
    }
}

#[tokio::test]
async fn a_key_of_an_app_counts_the_services_of_that_app_alone() {
    let device = device();
    let own = device
        .ask(request("GET", "/metrics", &device.shop_key))
        .await;
    has(&own.body, r#"supervisor_services{status="Running"} 1"#);
    assert!(!own.body.contains("exited"), "{}", own.body);
}

#[tokio::test]
async fn the_page_is_in_the_text_format() {
    let device = device();
    for path in ["/ping", "/v3/greet", "/v1/device"] {
        device.get(path).await;
    }
    let page = page(&device).await;
    assert!(page.ends_with('\n'));
    let mut families = BTreeSet::new();
    let mut family = "";
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            family = rest.split(' ').next().unwrap();
            assert!(families.insert(family), "{family} comes twice");
        } else if !line.starts_with("# HELP ") {
            let end = line.find(['{', ' ']).unwrap();
            let bare = ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|suffix| line[..end].strip_suffix(suffix))
                .filter(|bare| *bare == family);
            assert_eq!(bare.unwrap_or(&line[..end]), family, "{line}");
            let value = line.rsplit(' ').next().unwrap();
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
    }
}

#[tokio::test]
async fn metrics_of_a_plugin_have_its_name_as_a_prefix() {
    let page = page(&device()).await;
    let families = "# HELP plugin_greet__level Reported by the plugin greet.\n\
                    # TYPE plugin_greet__level gauge\n\
                    plugin_greet__level{tank=\"a \\\"b\\\"\"} 1e300\n\
                    plugin_greet__level{tank=\"c\"} -0.5\n\
                    # HELP plugin_greet__refills_total Reported by the plugin greet.\n\
                    # TYPE plugin_greet__refills_total counter\n\
                    plugin_greet__refills_total 18446744073709551615\n";
    assert!(page.contains(families), "{page}");
}
