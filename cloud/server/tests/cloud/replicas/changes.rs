//! Changes at one replica are known to the others.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::on_two;
use crate::fake_device::{connect, known};
use crate::harness::{EMAIL, PASSWORD};
use crate::reach::push::{next, update_listener, variable};
use crate::reach::{silent, until, until_connected};
use crate::shop::Shop;

#[tokio::test]
async fn a_change_at_one_replica_is_pushed_to_devices_that_are_connected_to_another() {
    on_two(async |two| {
        let (at_a, at_b) = (two.a.sign_in().await, two.b.sign_in().await);
        let fleet = at_a.fleet("pump", "raspberrypi4-64").await;
        let mut hear = Vec::new();
        for cloud in [&two.a, &two.b] {
            let device = known(&two.a, &at_a, fleet).await;
            let (router, mut receiver) = update_listener();
            connect(cloud, &device, router).await;
            until_connected(&at_b, device.id, true).await;
            // It was created and reported its secret while it was offline.
            next(&mut receiver).await;
            hear.push((device, receiver));
        }
        for (at, name) in [(&at_a, "A"), (&at_b, "B")] {
            variable(at, "application", fleet, name).await;
            for (_, receiver) in &mut hear {
                next(receiver).await;
            }
        }
        let (first, second) = hear.split_at_mut(1);
        variable(&at_b, "device", first[0].0.id, "C").await;
        next(&mut first[0].1).await;
        variable(&at_a, "device", second[0].0.id, "D").await;
        next(&mut second[0].1).await;
        for (_, receiver) in &mut hear {
            assert!(receiver.try_recv().is_err(), "once, and of nobody else's");
        }
    })
    .await;
}

#[tokio::test]
async fn a_key_that_is_revoked_at_one_replica_is_good_at_none() {
    on_two(async |two| {
        let ann = two.a.sign_in().await;
        let fleet = ann.fleet("pump", "raspberrypi4-64").await;
        let device = known(&two.a, &ann, fleet).await;
        let held = connect(&two.b, &device, silent()).await;
        until_connected(&ann, device.id, true).await;
        let at_b = two.b.by(device.key.clone());
        let state = format!("/device/v3/{}/state", device.uuid);
        // From here on, B caches the key for minutes.
        assert_eq!(at_b.get(&state).await.0, StatusCode::OK);
        let key = format!("/v7/api_key?$filter=is_of__actor eq {}", device.actor);
        let (status, _) = ann.answer(ann.ask(Method::DELETE, &key)).await;
        assert_eq!(status, StatusCode::OK);
        until("B refuses the key", async || {
            (at_b.get(&state).await.0 == StatusCode::UNAUTHORIZED).then_some(())
        })
        .await;
        held.await.expect("the tunnel at B ends");
    })
    .await;
}

#[tokio::test]
async fn sessions_and_keys_are_good_at_every_replica() {
    on_two(async |two| {
        let ann = two.a.sign_in().await;
        let at_b = two.b.by(ann.token.clone());
        assert_eq!(at_b.get("/user/v1/whoami").await.0, StatusCode::OK);
        let (status, key) = ann
            .send(Method::POST, "/api-key/user/full", json!({ "name": "k" }))
            .await;
        assert_eq!(status, StatusCode::OK, "{key}");
        let by_key = two.b.by(key.as_str().expect("a key").to_owned());
        assert_eq!(by_key.get("/actor/v1/whoami").await.0, StatusCode::OK);
        // A device that registers at one replica polls and reports at the other.
        let shop = Shop::open(&two.a).await;
        let device = shop.device(1).await;
        let there = crate::shop::Device {
            signed: two.b.by(device.signed.token.clone()),
            ..device
        };
        assert_eq!(there.poll(None).await.status(), StatusCode::OK);
        assert_eq!(
            there.report(json!({ "status": "Idle" })).await,
            StatusCode::OK
        );
        let row = shop.fields(&there, "status").await;
        assert_eq!(row["status"], "Idle");

        let new = json!({ "currentPassword": PASSWORD, "newPassword": "another long one" });
        let (status, _) = ann
            .send(Method::POST, "/user/v1/change-password", new)
            .await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(
            at_b.get("/user/v1/whoami").await.0,
            StatusCode::UNAUTHORIZED
        );
        let again = json!({ "username": EMAIL, "password": "another long one" });
        let answer = two.b.ask(Method::POST, "/login_").json(&again);
        assert_eq!(
            answer.send().await.expect("an answer").status(),
            StatusCode::OK
        );
    })
    .await;
}

#[tokio::test]
async fn a_cached_target_state_is_computed_again_after_a_change_at_another_replica() {
    on_two(async |two| {
        let shop = Shop::open(&two.a).await;
        let device = shop.device(1).await;
        let there = crate::shop::Device {
            signed: two.b.by(device.signed.token.clone()),
            uuid: device.uuid.clone(),
            id: device.id,
        };
        let (_, tag) = there.state().await;
        assert_eq!(
            there.poll(Some(&tag)).await.status(),
            StatusCode::NOT_MODIFIED
        );
        variable(&shop.ann, "device", device.id, "COLOUR").await;
        let (state, changed) = there.state().await;
        assert_ne!(changed, tag);
        let text = state.to_string();
        assert!(text.contains("\"COLOUR\":\"1\""), "{text}");
        let (status, _) = shop
            .ann
            .answer(
                shop.ann
                    .ask(Method::DELETE, &format!("/v7/device({})", device.id)),
            )
            .await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(
            there.poll(None).await.status(),
            StatusCode::NOT_MODIFIED,
            "it keeps what it has"
        );
        assert_eq!(
            there.report(json!({ "status": "Idle" })).await,
            StatusCode::UNAUTHORIZED
        );
        let rows = shop.ann.rows("/v7/device?$select=id").await;
        assert_eq!(rows, Vec::<Value>::new());
    })
    .await;
}
