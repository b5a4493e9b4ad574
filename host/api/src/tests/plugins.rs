//! `/v3/plugins` below its list.

use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use serde_json::{Value, json};

use super::DEADLINE;
use super::router::failed;
use crate::LocalModeAuth;
use crate::fake::{FakeDevice, Fixture, fixture, request};

/// The longest plugin, in bytes.
const MOST: usize = 64 << 20;

fn device() -> Fixture {
    fixture(FakeDevice::default(), LocalModeAuth::Strict)
}

#[tokio::test]
async fn the_last_lines_of_a_plugin_are_read_from_where_the_reader_was() {
    let device = device();
    let log = device.json("/v3/plugins/greet/log").await;
    assert_eq!(log["status"], "success");
    assert_eq!(log["newest"], 3);
    assert_eq!(
        log["lines"][0],
        json!({
            "number": 1, "time": "1970-01-01T00:00:00.000Z", "level": "info", "message": "line 1",
        })
    );
    let numbers = async |query: &str| -> Vec<Value> {
        let log = device.json(&format!("/v3/plugins/greet/log{query}")).await;
        let lines = log["lines"].as_array().unwrap();
        lines.iter().map(|line| line["number"].clone()).collect()
    };
    assert_eq!(numbers("").await, [1, 2, 3]);
    assert_eq!(numbers("?after=2").await, [3]);
    assert_eq!(numbers("?after=9").await, [] as [u64; 0]);
    for wrong in ["x", "", "-1", "1.5", "99999999999999999999"] {
        let answer = device
            .get(&format!("/v3/plugins/greet/log?after={wrong}"))
            .await;
        assert_eq!(answer.status, 400, "{wrong}: {answer:?}");
    }
    for unknown in ["nobody", "%2e%2e", "greet%2f"] {
        let answer = device.get(&format!("/v3/plugins/{unknown}/log")).await;
        let message = "the device has no plugin of that name: GET /v3/plugins lists its plugins";
        assert_eq!(answer, failed(404, message), "{unknown}");
    }
}

#[tokio::test]
async fn the_log_of_a_plugin_is_for_the_devices_key_alone() {
    let device = device();
    for path in ["/v3/plugins/greet/log", "/v3/plugins/nobody/log"] {
        let by_service = device.ask(request("GET", path, &device.shop_key)).await;
        assert_eq!(by_service, failed(401, "Unauthorized"), "{path}");
        for key in ["", "wrong"] {
            let answer = device.ask(request("GET", path, key)).await;
            assert_eq!((answer.status, answer.body.as_str()), (401, "Unauthorized"));
        }
    }
}

/// Returns a developer's device.
fn developers() -> Fixture {
    let device = device();
    device
        .endpoints
        .is_developers
        .store(true, Ordering::Relaxed);
    device
}

fn put(device: &Fixture, name: &str, body: Body) -> http::Request<Body> {
    let path = format!("/v3/plugins/{name}");
    let mut request = request("PUT", &path, &device.key);
    *request.body_mut() = body;
    request
}

/// Returns a body of this many MiB that does not announce its length.
fn mebibytes(count: usize) -> Body {
    let piece = Bytes::from(vec![0; 1 << 20]);
    let pieces = stream::iter(std::iter::repeat_n(piece, count));
    Body::from_stream(pieces.map(Ok::<_, std::io::Error>))
}

#[tokio::test]
async fn a_developer_installs_and_removes_a_plugin() {
    let device = developers();
    let answer = device.ask(put(&device, "hello", mebibytes(64))).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let body: Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(
        body,
        json!({
            "status": "success", "version": "0.2.0", "digest": "00", "previous": "0.1.0", "state": "running",
        })
    );
    let delete = request("DELETE", "/v3/plugins/greet", &device.key);
    assert_eq!(device.ask(delete).await.status, 200);
    let delete = request("DELETE", "/v3/plugins/nobody", &device.key);
    assert_eq!(device.ask(delete).await.status, 404);
    let uploads = device.endpoints.uploads.lock().unwrap();
    assert_eq!(uploads.installed, [("hello".to_owned(), MOST)]);
    assert_eq!(uploads.removed, ["greet"]);
}

#[tokio::test]
async fn nobody_but_the_owner_of_a_developers_device_installs_or_removes_a_plugin() {
    let on_shelf = device();
    let developers = developers();
    let in_local_mode = FakeDevice {
        local_mode: true,
        ..FakeDevice::default()
    };
    let local = fixture(in_local_mode, LocalModeAuth::Open);
    let open = local.ask(request("GET", "/v3/plugins", "")).await;
    assert_eq!(open.status, 200, "{open:?}");
    local.endpoints.is_developers.store(true, Ordering::Relaxed);
    for method in ["PUT", "DELETE"] {
        let send = async |device: &Fixture, key: &str| {
            let mut request = request(method, "/v3/plugins/greet", key);
            *request.body_mut() = Body::from("component");
            device.ask(request).await
        };
        // With the owner's key, on somebody else's device.
        let refused = send(&on_shelf, &on_shelf.key).await;
        assert_eq!(refused.status, 403, "{refused:?}");
        for expected in [
            "is not in developer mode",
            "supervisor plugins install FILE",
            "--allow-unpinned",
        ] {
            assert!(refused.body.contains(expected), "{refused:?}");
        }
        // With another key, on a developer's device.
        let by_service = send(&developers, &developers.shop_key).await;
        assert_eq!(by_service, failed(401, "Unauthorized"));
        for key in ["", "wrong"] {
            assert_eq!(send(&developers, key).await.status, 401, "{key}");
        }
        // Even if local mode needs no key, this does.
        assert_eq!(send(&local, "").await.status, 401);
    }
    for device in [on_shelf, developers, local] {
        let uploads = device.endpoints.uploads.lock().unwrap();
        assert_eq!(uploads.begun, 0);
        assert_eq!(uploads.removed, [] as [String; 0]);
    }
}

#[tokio::test]
async fn a_plugin_that_is_too_long_or_does_not_arrive_is_not_installed() {
    let device = developers();
    let too_long = failed(413, "the plugin is larger than 64 MiB");
    let answer = device.ask(put(&device, "hello", mebibytes(65))).await;
    assert_eq!(answer, too_long);
    // Because of its announced length, before any of it is read.
    let begun = device.endpoints.uploads.lock().unwrap().begun;
    let mut announced = put(&device, "hello", Body::empty());
    let length = (MOST + 1).to_string().parse().unwrap();
    announced.headers_mut().insert(CONTENT_LENGTH, length);
    assert_eq!(device.ask(announced).await, too_long);
    assert_eq!(device.endpoints.uploads.lock().unwrap().begun, begun);

    let first = || stream::iter([Ok::<_, std::io::Error>(Bytes::from("begin"))]);
    let stalls = first().chain(stream::pending());
    let answer = device
        .ask(put(&device, "hello", Body::from_stream(stalls)))
        .await;
    assert_eq!(answer.status, 408, "{answer:?}");
    assert!(answer.body.contains("nothing of it arrived"), "{answer:?}");
    // A byte now and then does not count as progress forever.
    let drips = stream::unfold((), |()| async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        Some((Ok::<_, std::io::Error>(Bytes::from("x")), ()))
    });
    let drips = put(&device, "hello", Body::from_stream(drips));
    let answer = tokio::time::timeout(DEADLINE, device.ask(drips)).await;
    let answer = answer.unwrap();
    assert_eq!(answer.status, 408, "{answer:?}");
    assert!(answer.body.contains("it took longer"), "{answer:?}");
    let breaks = first().chain(stream::iter([Err(std::io::Error::other("gone"))]));
    let answer = device
        .ask(put(&device, "hello", Body::from_stream(breaks)))
        .await;
    assert_eq!(answer.status, 400, "{answer:?}");
    let mut compressed = put(&device, "hello", Body::from("x"));
    let gzip = "gzip".parse().unwrap();
    compressed.headers_mut().insert(CONTENT_ENCODING, gzip);
    assert_eq!(device.ask(compressed).await.status, 415);
    let shipped = device.ask(put(&device, "shipped", Body::from("x"))).await;
    assert_eq!(shipped, failed(409, "it is shipped"));
    assert_eq!(device.endpoints.uploads.lock().unwrap().installed, []);
}
