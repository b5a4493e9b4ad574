//! Requests to devices that are connected to another replica than the one that receives the
//! request.

use axum::Router;
use axum::body::Body;
use axum::routing::any;
use futures::{StreamExt as _, stream};
use http::header::CONTENT_TYPE;
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::on_two;
use crate::fake_device::{connect, known};
use crate::harness::{PATIENCE, read};
use crate::reach::proxy::{Flood, PIECE, echo, send_device_request};
use crate::reach::{silent, until, until_connected};

#[tokio::test]
async fn any_replica_asks_a_device_wherever_it_is_connected() {
    on_two(async |two| {
        let (at_a, at_b) = (two.a.sign_in().await, two.b.sign_in().await);
        let fleet = at_a.fleet("pump", "raspberrypi4-64").await;
        let device = known(&two.a, &at_a, fleet).await;
        let away = known(&two.a, &at_a, fleet).await;
        connect(&two.a, &device, echo()).await;
        until_connected(&at_b, device.id, true).await;

        let key = "apikey=secret+of+the+supervisor";
        // The maximum length of a request: it is sent in pieces, and comes back in pieces.
        let long = "x".repeat(480_000);
        for data in [json!({ "force": true }), json!({ "long": long })] {
            let body = json!({ "uuid": device.uuid, "method": "PATCH", "data": data });
            let (status, answer) = read(send_device_request(&at_b, "/v2/local?a=%20b", body).await).await;
            assert_eq!(status, StatusCode::OK);
            let expected = json!({
                "method": "PATCH", "target": format!("/v2/local?a=%20b&{key}"), "type": "application/json",
                "authorization": false, "body": data.to_string(),
            });
            assert_eq!(answer, expected);
        }
        let one = json!({ "deviceId": device.id });
        let locked = read(send_device_request(&at_b, "/v1/locked", one.clone()).await).await;
        assert_eq!(locked.0, StatusCode::LOCKED);
        let nothing = read(send_device_request(&at_b, "/v1/nothing", one.clone()).await).await;
        assert_eq!(nothing, (StatusCode::NO_CONTENT, Value::Null));
        let none = json!("No online device(s) found");
        let nobody = read(send_device_request(&at_b, "/ping", json!({ "deviceId": away.id })).await).await;
        assert_eq!(nobody, (StatusCode::NOT_FOUND, none));
        // Services of a device use its key, which B has never seen.
        let itself = two.b.by(device.key.clone());
        let ping = read(send_device_request(&itself, "/ping", json!({ "uuid": device.uuid })).await).await;
        assert_eq!(ping, (StatusCode::OK, json!("OK")));
    })
    .await;
}

#[tokio::test]
async fn a_fleet_answers_as_one_whose_devices_are_at_several_replicas() {
    on_two(async |two| {
        let ann = two.a.sign_in().await;
        let fleet = ann.fleet("pump", "raspberrypi4-64").await;
        let mut devices = Vec::new();
        for (cloud, router) in [
            (&two.a, echo()),
            (&two.b, echo()),
            (&two.a, silent()),
            (&two.b, silent()),
        ] {
            let device = known(&two.a, &ann, fleet).await;
            connect(cloud, &device, router).await;
            until_connected(&ann, device.id, true).await;
            devices.push(device);
        }
        known(&two.a, &ann, fleet).await;
        for cloud in [&two.a, &two.b] {
            let by = cloud.by(ann.token.clone());
            let body = json!({ "appId": fleet, "method": "GET" });
            let (status, list) = read(send_device_request(&by, "/v1/device", body).await).await;
            assert_eq!(status, StatusCode::MULTI_STATUS);
            let statuses: Vec<_> = list
                .as_array()
                .expect("a list")
                .iter()
                .map(|entry| entry["statusCode"].as_u64())
                .collect();
            assert_eq!(
                statuses,
                [Some(200), Some(200), Some(404), Some(404)],
                "{list}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn an_answer_of_another_replica_is_read_as_fast_as_the_caller_reads() {
    on_two(async |two| {
        let (at_a, at_b) = (two.a.sign_in().await, two.b.sign_in().await);
        let fleet = at_a.fleet("pump", "raspberrypi4-64").await;
        let flood = Flood::default();
        let device = known(&two.a, &at_a, fleet).await;
        connect(&two.a, &device, flood.router()).await;
        until_connected(&at_b, device.id, true).await;
        let one = json!({ "deviceId": device.id });
        let answer = send_device_request(&at_b, "/flood", one.clone()).await;
        assert_eq!(answer.status(), StatusCode::OK);
        let before = two.a.memory() + two.b.memory();
        let mut read = answer.bytes_stream();
        read.next().await.expect("a piece").expect("bytes");
        let mut last = 0;
        let held = until("the device is held back", async || {
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            let made = flood.made();
            let same = made == last;
            last = made;
            same.then_some(made)
        })
        .await;
        assert!(held * PIECE < 32 << 20, "{held} pieces are on the way");
        let ping = send_device_request(&at_b, "/ping", one).await;
        assert_eq!(ping.status(), StatusCode::NOT_FOUND, "of the device");
        let mut bytes = 0;
        while bytes < 64 << 20 {
            bytes += read.next().await.expect("a piece").expect("bytes").len();
        }
        let grown = (two.a.memory() + two.b.memory()).saturating_sub(before);
        assert!(grown < 48 << 20, "{grown} bytes more than before");
        drop(read);
        until("the device hears that nobody reads", async || {
            flood.is_dropped().then_some(())
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn a_device_that_goes_away_breaks_what_another_replica_passes_on() {
    on_two(async |two| {
        let (at_a, at_b) = (two.a.sign_in().await, two.b.sign_in().await);
        let fleet = at_a.fleet("pump", "raspberrypi4-64").await;
        let half = Router::new().route(
            "/half",
            any(async || {
                let half = stream::iter([Ok::<_, std::io::Error>("half")]).chain(stream::pending());
                ([(CONTENT_TYPE, "text/plain")], Body::from_stream(half))
            }),
        );
        let device = known(&two.a, &at_a, fleet).await;
        let held = connect(&two.a, &device, half).await;
        until_connected(&at_b, device.id, true).await;
        let one = json!({ "deviceId": device.id });
        let answer = send_device_request(&at_b, "/half", one.clone()).await;
        assert_eq!(answer.status(), StatusCode::OK);
        held.abort();
        answer
            .bytes()
            .await
            .expect_err("it is cut off, and does not look whole");
        until_connected(&at_b, device.id, false).await;
        let (status, _) = read(send_device_request(&at_b, "/ping", one).await).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
    })
    .await;
}

#[tokio::test]
async fn the_newest_tunnel_of_a_device_counts_wherever_it_was_opened() {
    on_two(async |two| {
        let ann = two.a.sign_in().await;
        let fleet = ann.fleet("pump", "raspberrypi4-64").await;
        let device = known(&two.a, &ann, fleet).await;
        let first = connect(&two.a, &device, silent()).await;
        until_connected(&ann, device.id, true).await;
        connect(&two.b, &device, echo()).await;
        let ends = tokio::time::timeout(PATIENCE, first).await;
        ends.expect("in time").expect("the older ends");
        for cloud in [&two.a, &two.b] {
            let by = cloud.by(ann.token.clone());
            let body = json!({ "deviceId": device.id, "method": "GET" });
            until("the newer one is asked", async || {
                let answer = read(send_device_request(&by, "/ping", body.clone()).await).await;
                (answer == (StatusCode::OK, json!("OK"))).then_some(())
            })
            .await;
        }
        until_connected(&ann, device.id, true).await;
    })
    .await;
}
