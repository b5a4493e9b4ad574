//! `GET /v3/events`: the events while a device works, and the treatment of readers.

use std::fs;

use serde_json::{Value, json};
use tests::{Event, Supervisor, guest, service, target, until};

fn web_target(app: u64, changed: &str) -> Value {
    let changed = json!({"environment": {"CHANGED": changed}});
    target(app, &[service("web", &guest("hello-server"), &changed)])
}

fn statuses(events: &[Event]) -> Vec<&str> {
    let changes = events.iter().filter(|event| event.kind == "service");
    changes
        .map(|event| event.data["status"].as_str().unwrap_or("nothing"))
        .collect()
}

#[tokio::test]
async fn the_event_stream_reports_an_update_from_begin_to_end() {
    let device = Supervisor::on_wasm().start().await;
    device.until_applied().await;
    let mut reader = device.read_events().await;
    device.set_target(&web_target(7, "no")).await;
    let seen = reader
        .until("apply-end", |data| data["reached"] == true)
        .await;
    assert!(
        seen.iter().any(|event| event.kind == "apply-begin"),
        "{seen:#?}"
    );
    assert_eq!(statuses(&seen).last(), Some(&"Running"), "{seen:#?}");
    let progress: Vec<_> = seen
        .iter()
        .filter(|event| event.kind == "download")
        .collect();
    let last = progress.last().expect("a download");
    assert_eq!(
        (
            &last.data["progress"],
            &last.data["appId"],
            &last.data["service"]
        ),
        (&json!(100), &json!(7), &json!("web"))
    );
    // Numbers increase by one: nothing was lost.
    let numbers: Vec<u64> = seen
        .iter()
        .map(|event| event.id.as_deref().unwrap().split_once('-').unwrap().1)
        .map(|number| number.parse().unwrap())
        .collect();
    assert!(
        numbers.windows(2).all(|pair| pair[1] == pair[0] + 1),
        "{numbers:?}"
    );

    let mut only = device.read_events_after(None, "?types=service").await;
    device.set_target(&target(7, &[])).await;
    let seen = only.until("service", |data| data["status"].is_null()).await;
    assert!(
        seen.iter().all(|event| event.kind == "service"),
        "{seen:#?}"
    );
    assert!(statuses(&seen).contains(&"Stopping"), "{seen:#?}");
}

#[tokio::test]
async fn the_event_stream_reports_a_lock_a_failure_and_a_reboot() {
    let device = Supervisor::on_wasm().start().await;
    device.set_target(&web_target(7, "no")).await;
    device.until_applied().await;
    let lock = device
        .host_root()
        .join("tmp/platform-supervisor/services/7/web/updates.lock");
    fs::write(&lock, "").unwrap();
    let mut reader = device.read_events().await;
    device.set_target(&web_target(7, "yes")).await;
    let seen = reader.until("lock-wait", |data| data["appId"] == 7).await;
    let message = seen.last().unwrap().data["message"].as_str().unwrap();
    assert!(message.contains("service: web"), "{message}");
    fs::remove_file(&lock).unwrap();
    reader
        .until("apply-end", |data| data["reached"] == true)
        .await;

    let missing = std::path::Path::new("/nowhere/at-all.wasm");
    device
        .set_target(&target(7, &[service("web", missing, &json!({}))]))
        .await;
    let seen = reader
        .until("step-failed", |data| data["failures"] == 2)
        .await;
    let failed = &seen.last().unwrap().data;
    assert_eq!(failed["subject"], "image file:/nowhere/at-all.wasm");

    assert_eq!(device.post("/v1/reboot", &json!({})).await.status, 202);
    let seen = reader.until("power", |_| true).await;
    assert_eq!(
        seen.last().unwrap().data,
        json!({"action": "reboot", "force": false})
    );
}

#[tokio::test]
async fn a_reader_that_comes_back_misses_nothing_and_learns_of_a_restart() {
    let mut device = Supervisor::on_wasm().start().await;
    device.until_applied().await;
    let mut reader = device.read_events().await;
    device.set_target(&web_target(7, "no")).await;
    let seen = reader.until("apply-end", |_| true).await;
    drop(reader);
    let first = seen[0].id.as_deref();
    let mut again = device.read_events_after(first, "").await;
    for expected in &seen[1..] {
        assert_eq!(again.next().await.as_ref(), Some(expected));
    }

    // SIGTERM ends the stream at once, and properly.
    let reading = tokio::spawn(async move { while again.next().await.is_some() {} });
    assert_eq!(device.terminate().await.code(), Some(0));
    reading.await.unwrap();

    device.start_again().await;
    let last = seen.last().unwrap().id.as_deref();
    let mut after = device.read_events_after(last, "").await;
    let gap = after.next().await.unwrap();
    assert_eq!(
        (gap.kind.as_str(), &gap.data),
        ("gap", &json!({"missed": null}))
    );
    assert_eq!(gap.id, None);
    // The running services are reported again, with new ids.
    let events = after
        .until("service", |data| data["status"] == "Running")
        .await;
    for event in events {
        assert!(
            !seen.iter().any(|before| before.id == event.id),
            "{event:?}"
        );
    }
}

#[tokio::test]
async fn there_is_a_bound_on_readers_and_one_that_leaves_makes_room() {
    let device = Supervisor::on_wasm().start().await;
    let mut readers = Vec::new();
    for _ in 0..32 {
        readers.push(device.read_events().await);
    }
    let refused = device.get("/v3/events").await;
    assert_eq!(refused.status, 503);
    assert_eq!(
        refused.failure().as_deref(),
        Some("32 clients are already reading events: try again when one has disconnected")
    );
    readers.pop();
    until("a place for a reader", || async {
        let request = device.request("GET", "/v3/events");
        match request.send().await.unwrap().status().as_u16() {
            200 => Ok(()),
            other => Err(other),
        }
    })
    .await;
}
