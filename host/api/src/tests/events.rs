//! `GET /v3/events`: who may read, which events, and how many readers.

use device_types::event::{ApplyEnd, Audience, Event};
use http_body_util::BodyExt;
use model::AppId;

use super::router::failed;
use crate::LocalModeAuth;
use crate::events::MAX_READERS;
use crate::fake::{FakeDevice, Fixture, fixture, request};

fn device() -> Fixture {
    fixture(FakeDevice::default(), LocalModeAuth::default())
}

fn end() -> Event {
    Event::ApplyEnd(ApplyEnd { reached: true })
}

#[tokio::test]
async fn a_stream_begins_at_once_and_ends_with_the_supervisor() {
    let device = device();
    let response = device
        .app
        .answer(request("GET", "/v3/events", &device.shop_key))
        .await;
    assert_eq!(response.status(), 200);
    let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("content-type"), "text/event-stream; charset=utf-8");
    assert_eq!(header("cache-control"), "no-cache");
    let events = &device.device.events;
    events.publish(Audience::App(AppId(2)), end());
    events.publish(Audience::App(AppId(1)), end());
    let mut body = response.into_body();
    let mut text = String::new();
    while !text.contains("event:") {
        let frame = body.frame().await.unwrap().unwrap();
        text.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
    }
    assert!(text.starts_with("retry: "), "{text}");
    assert!(text.contains("-2\nevent: apply-end\n"), "{text}");
    device.stopping.cancel();
    while let Some(frame) = body.frame().await {
        frame.unwrap();
    }
}

#[tokio::test]
async fn a_type_that_there_is_not_is_refused_by_name() {
    let device = device();
    let known = "service, release, download, lock-wait, update-postponed, release-unhealthy, os-update, step-failed, \
                 apply-begin, apply-end, plugin-fault, power";
    for (query, name) in [
        ("types=service,nonsense", "nonsense"),
        ("types=", ""),
        ("types=service,", ""),
        ("types=Service", "Service"),
        ("types=service&types=gap", "gap"),
    ] {
        let message =
            format!("`types` contains `{name}`, which is not a type of event: use {known}");
        let answer = device.get(&format!("/v3/events?{query}")).await;
        assert_eq!(answer, failed(400, &message), "{query}");
    }
    let long = "x".repeat(300);
    let answer = device.get(&format!("/v3/events?types={long}")).await;
    assert_eq!(answer, failed(400, "`types` is longer than 256 bytes"));
}

#[tokio::test]
async fn there_is_a_bound_on_readers_and_one_that_leaves_makes_room() {
    let device = device();
    let ask = || async {
        let request = request("GET", "/v3/events?types=power", &device.key);
        device.app.answer(request).await
    };
    let mut readers = Vec::new();
    for _ in 0..MAX_READERS {
        readers.push(ask().await);
    }
    let message = format!(
        "{MAX_READERS} clients are already reading events: try again when one has disconnected"
    );
    assert_eq!(device.get("/v3/events").await, failed(503, &message));
    drop(readers.pop());
    assert_eq!(ask().await.status(), 200);
}
