//! Opening, replacing and losing tunnels.

use data::testing::on_fresh;
use http::{HeaderMap, StatusCode};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tunnel::{CloseMessage, CloseReason, Offer};

use super::proxy::{Flood, send_device_request};
use super::{silent, until, until_connected};
use crate::fake_device::{PROTOCOL, ask_for_tunnel, connect, known};
use crate::harness::{Cloud, PATIENCE, on_both};

/// Returns why the cloud ends a tunnel, once it does.
async fn why(held: JoinHandle<Option<CloseMessage>>) -> CloseReason {
    let ended = tokio::time::timeout(PATIENCE, held).await;
    let message = ended.expect("an end in time").expect("an end");
    let message = message.expect("a word");
    let known = [
        CloseReason::GoingAway,
        CloseReason::Replaced,
        CloseReason::Removed,
        CloseReason::KeyChanged,
    ];
    let found = known.into_iter().find(|reason| message.is(*reason));
    found.unwrap_or_else(|| panic!("{message}"))
}

#[tokio::test]
async fn a_device_is_connected_for_as_long_as_it_holds_a_tunnel() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let fleet = ann.fleet("pump", "raspberrypi4-64").await;
        let device = known(&cloud, &ann, fleet).await;
        let before = until_connected(&ann, device.id, false).await;
        assert_eq!(before["last_vpn_event"], Value::Null);

        let first = connect(&cloud, &device, silent()).await;
        let since = until_connected(&ann, device.id, true).await;
        assert!(since["last_vpn_event"].is_string(), "{since}");
        assert_eq!(since["last_vpn_event"], since["last_connectivity_event"]);

        // A newer tunnel replaces the older one, and the device was never offline.
        let second = connect(&cloud, &device, silent()).await;
        assert_eq!(why(first).await, CloseReason::Replaced);
        assert_eq!(until_connected(&ann, device.id, true).await, since);

        second.abort();
        let after = until_connected(&ann, device.id, false).await;
        assert_ne!(after["last_vpn_event"], since["last_vpn_event"]);
    })
    .await;
}

#[tokio::test]
async fn a_line_about_a_tunnel_says_of_which_device() {
    on_fresh(async |url| {
        let log = [("RUST_LOG", "info,cloud_core=debug")];
        let cloud = Cloud::start_in(&url, "", &log).await;
        let ann = cloud.sign_in().await;
        let fleet = ann.fleet("pump", "raspberrypi4-64").await;
        let devices = [
            known(&cloud, &ann, fleet).await,
            known(&cloud, &ann, fleet).await,
        ];
        for device in &devices {
            let held = connect(&cloud, device, silent()).await;
            let line = format!(
                "device_connection{{device={}}}: a tunnel is open",
                device.id
            );
            until(&line, async || cloud.log().contains(&line).then_some(())).await;
            held.abort();
        }
    })
    .await;
}

#[tokio::test]
async fn only_a_key_of_the_device_opens_its_tunnel_and_only_with_the_right_handshake() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let fleet = ann.fleet("pump", "raspberrypi4-64").await;
        let device = known(&cloud, &ann, fleet).await;
        let other = known(&cloud, &ann, fleet).await;
        let offer = |protocol| Offer::new(protocol).expect("an offer").headers();
        for (uuid, key, headers, status) in [
            (&device.uuid, None, offer(PROTOCOL), 401),
            (&device.uuid, Some("nobody's"), offer(PROTOCOL), 401),
            (&device.uuid, Some(ann.token.as_str()), offer(PROTOCOL), 401),
            (&device.uuid, Some(other.key.as_str()), offer(PROTOCOL), 401),
            (
                &"ab".repeat(16),
                Some(device.key.as_str()),
                offer(PROTOCOL),
                401,
            ),
            (&device.uuid, Some(device.key.as_str()), offer("mqtt"), 400),
            (
                &device.uuid,
                Some(device.key.as_str()),
                HeaderMap::new(),
                426,
            ),
        ] {
            let refused = ask_for_tunnel(&cloud, uuid, key, headers.clone()).await;
            let refused = refused.expect_err("no tunnel");
            assert_eq!(refused.as_u16(), status, "{uuid} {key:?} {headers:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_tunnel_ends_with_the_key_or_the_device_that_it_was_opened_by() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let fleet = ann.fleet("pump", "raspberrypi4-64").await;
        let (device, other) = (
            known(&cloud, &ann, fleet).await,
            known(&cloud, &ann, fleet).await,
        );
        let held = connect(&cloud, &device, silent()).await;
        let kept = connect(&cloud, &other, silent()).await;
        until_connected(&ann, device.id, true).await;
        let path = format!("/v7/device({})", device.id);
        let (status, _) = ann.answer(ann.ask(Method::DELETE, &path)).await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(why(held).await, CloseReason::Removed);

        until_connected(&ann, other.id, true).await;
        let key = format!("/v7/api_key?$filter=is_of__actor eq {}", other.actor);
        let (status, answer) = ann.answer(ann.ask(Method::DELETE, &key)).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        assert_eq!(why(kept).await, CloseReason::KeyChanged);
        until_connected(&ann, other.id, false).await;
    })
    .await;
}

#[tokio::test]
async fn requests_in_progress_end_when_the_device_is_deleted() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let fleet = ann.fleet("pump", "raspberrypi4-64").await;
        let device = known(&cloud, &ann, fleet).await;
        let flood = Flood::default();
        let held = connect(&cloud, &device, flood.router()).await;
        until_connected(&ann, device.id, true).await;
        let answer = send_device_request(&ann, "/flood", json!({ "deviceId": device.id })).await;
        assert_eq!(answer.status(), StatusCode::OK);
        let path = format!("/v7/device({})", device.id);
        let (status, _) = ann.answer(ann.ask(Method::DELETE, &path)).await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(why(held).await, CloseReason::Removed);
        let rest = tokio::time::timeout(PATIENCE, answer.bytes()).await;
        rest.expect("an end").expect_err("it is cut off");
    })
    .await;
}

#[tokio::test]
async fn a_cloud_that_ends_says_so_to_its_devices_whatever_is_under_way() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let fleet = ann.fleet("pump", "raspberrypi4-64").await;
        let (idle, busy) = (
            known(&cloud, &ann, fleet).await,
            known(&cloud, &ann, fleet).await,
        );
        let idle_held = connect(&cloud, &idle, silent()).await;
        let flood = Flood::default();
        let busy_held = connect(&cloud, &busy, flood.router()).await;
        for device in [&idle, &busy] {
            until_connected(&ann, device.id, true).await;
        }
        let answer = send_device_request(&ann, "/flood", json!({ "deviceId": busy.id })).await;
        assert_eq!(answer.status(), StatusCode::OK);
        let ended = cloud.end();
        let (idle, busy, ()) = tokio::join!(why(idle_held), why(busy_held), ended);
        assert_eq!(
            (idle, busy),
            (CloseReason::GoingAway, CloseReason::GoingAway)
        );
    })
    .await;
}

#[tokio::test]
async fn nobody_stays_connected_to_a_cloud_that_ended() {
    on_fresh(async |url| {
        let cloud = Cloud::start(&url).await;
        let ann = cloud.sign_in().await;
        let fleet = ann.fleet("pump", "raspberrypi4-64").await;
        let mut devices = Vec::new();
        for _ in 0..3 {
            let device = known(&cloud, &ann, fleet).await;
            connect(&cloud, &device, silent()).await;
            until_connected(&ann, device.id, true).await;
            devices.push(device.id);
        }
        // When told to end, it marks its devices as disconnected. With SQLite that is unnecessary: there is no other
        // replica that they could be connected to. (A replica that shares a server with others counts as gone after
        // half a minute.)
        if url.starts_with("sqlite:") {
            drop(cloud)
        } else {
            cloud.end().await
        }
        let cloud = Cloud::start(&url).await;
        let ann = cloud.sign_in().await;
        for device in devices {
            let row = super::connection(&ann, device).await;
            assert_eq!(row["is_connected_to_vpn"], false, "{row}");
            assert!(row["last_vpn_event"].is_string(), "{row}");
        }
        let instances = ann.rows("/v7/service_instance?$select=id").await;
        assert_eq!(instances.len(), 1, "{instances:?}");
    })
    .await;
}

#[tokio::test]
async fn many_that_connect_at_once_are_all_written() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let fleet = ann.fleet("pump", "raspberrypi4-64").await;
        let mut devices = Vec::new();
        for _ in 0..40 {
            devices.push(known(&cloud, &ann, fleet).await);
        }
        let connecting = devices
            .iter()
            .map(|device| connect(&cloud, device, silent()));
        let held = futures::future::join_all(connecting).await;
        let connected = "/v7/device/$count?$filter=is_connected_to_vpn eq true";
        let count = async || ann.get(connected).await.1["d"].as_i64();
        until("all of them", async || {
            (count().await == Some(40)).then_some(())
        })
        .await;
        for one in held {
            one.abort();
        }
        until("none of them", async || {
            (count().await == Some(0)).then_some(())
        })
        .await;
    })
    .await;
}
