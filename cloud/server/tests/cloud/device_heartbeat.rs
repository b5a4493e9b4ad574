//! The online state of devices (docs/spec/cloud.md#device-online,
//! docs/spec/cloud.md#pitfall-heartbeat).

use data::testing::sql;
use data::{Database, Options};
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Cloud, on_both};
use crate::shop::{Device, Shop, until};

const STATE: &str = "api_heartbeat_state,changed_api_heartbeat_state_on__date,overall_status";

async fn state(shop: &Shop<'_>, device: &Device<'_>) -> Value {
    shop.fields(device, STATE).await
}

async fn until_it_is(shop: &Shop<'_>, device: &Device<'_>, expected: &str) {
    until(expected, || async {
        state(shop, device).await["api_heartbeat_state"] == json!(expected)
    })
    .await;
}

/// Returns when the device counts as silent, in milliseconds.
async fn deadline(shop: &Shop<'_>, device: &Device<'_>) -> Option<i64> {
    let options = Options::default().with_connections(2);
    let database = Database::open(&shop.cloud.database, &options)
        .await
        .expect("the database");
    let select = sql("SELECT deadline FROM device_heartbeat WHERE device = ?").with(device.id);
    let row = database.row(&select).await.expect("its statement");
    let deadline = row.map(|row| row.id(0).expect("a number"));
    database.close().await;
    deadline
}

/// Returns the milliseconds that the device has left.
async fn left(shop: &Shop<'_>, device: &Device<'_>) -> Option<i64> {
    let now = std::time::UNIX_EPOCH.elapsed().expect("a time").as_millis();
    let now = i64::try_from(now).expect("a time");
    deadline(shop, device).await.map(|deadline| deadline - now)
}

async fn let_time_pass(shop: &Shop<'_>, device: &Device<'_>) {
    let update = sql("UPDATE device_heartbeat SET deadline = 1 WHERE device = ?").with(device.id);
    assert_eq!(shop.execute(update).await, 1);
}

#[tokio::test]
async fn a_device_that_polls_is_online_and_one_that_stops_is_so_no_more() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let device = shop.device(1).await;
        let before = state(&shop, &device).await;
        assert_eq!(before["api_heartbeat_state"], json!("unknown"));
        assert_eq!(before["changed_api_heartbeat_state_on__date"], Value::Null);
        // A person who reads the state does not count as the device.
        let path = format!("/device/v3/{}/state", device.uuid);
        assert_eq!(shop.ann.get(&path).await.0, 200);
        assert_eq!(left(&shop, &device).await, None);

        device.state().await;
        until_it_is(&shop, &device, "online").await;
        let online = state(&shop, &device).await;
        let remaining = left(&shop, &device).await.expect("a deadline");
        assert!((800_000..=900_000).contains(&remaining), "{remaining}");
        // Only changes are written.
        let first = deadline(&shop, &device).await;
        device.state().await;
        until("the next deadline", || async {
            deadline(&shop, &device).await > first
        })
        .await;
        let same = state(&shop, &device).await;
        assert_eq!(same, online);

        let_time_pass(&shop, &device).await;
        until_it_is(&shop, &device, "timeout").await;
        assert_ne!(
            state(&shop, &device).await["changed_api_heartbeat_state_on__date"],
            online["changed_api_heartbeat_state_on__date"]
        );
        let remaining = left(&shop, &device).await.expect("a second chance");
        assert!((0..=15_000).contains(&remaining), "{remaining}");
        // It was only late.
        device.state().await;
        until_it_is(&shop, &device, "online").await;
        for expected in ["timeout", "offline"] {
            let_time_pass(&shop, &device).await;
            until_it_is(&shop, &device, expected).await;
        }
        assert_eq!(left(&shop, &device).await, None);
        assert_eq!(
            state(&shop, &device).await["overall_status"],
            json!("disconnected")
        );
        let older = format!("/device/v2/{}/state", device.uuid);
        assert_eq!(device.signed.get(&older).await.0, 200);
        until_it_is(&shop, &device, "online").await;
    })
    .await;
}

#[tokio::test]
async fn the_time_a_device_has_follows_how_often_it_is_to_poll() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let [one, two] = [shop.device(1).await, shop.device(2).await];
        let body = json!({
            "device": one.id, "name": "PLATFORM_SUPERVISOR_POLL_INTERVAL", "value": "1200000",
        });
        shop.ann.create("device_config_variable", body).await;
        for (device, expected) in [(&one, 1_800_000), (&two, 900_000)] {
            device.state().await;
            until_it_is(&shop, device, "online").await;
            let remaining = left(&shop, device).await.expect("a deadline");
            assert!(
                (expected - 100_000..=expected).contains(&remaining),
                "{remaining}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn the_time_a_device_has_outlives_the_cloud() {
    data::testing::on_fresh(async |url| {
        let cloud = Cloud::start(&url).await;
        let shop = Shop::open(&cloud).await;
        let device = shop.device(1).await;
        device.state().await;
        until_it_is(&shop, &device, "online").await;
        let (id, uuid, key) = (device.id, device.uuid.clone(), device.signed.token.clone());
        drop(shop);
        drop(cloud);

        let cloud = Cloud::start(&url).await;
        let second = Cloud::start(&url).await;
        let shop = Shop::named(&cloud, "later").await;
        let device = Device {
            id,
            uuid,
            signed: cloud.by(key),
        };
        assert!(left(&shop, &device).await.is_some());
        assert_eq!(
            state(&shop, &device).await["api_heartbeat_state"],
            json!("online")
        );
        // Two replicas check, one writes.
        let_time_pass(&shop, &device).await;
        until_it_is(&shop, &device, "timeout").await;
        // The device polls at the other replica.
        let path = format!("/device/v3/{}/state", device.uuid);
        let by_second = second.by(device.signed.token.clone());
        assert_eq!(
            by_second.answer(by_second.ask(Method::GET, &path)).await.0,
            200
        );
        until_it_is(&shop, &device, "online").await;
        let (status, _) = shop
            .ann
            .answer(shop.ann.ask(Method::DELETE, &format!("/v7/device({id})")))
            .await;
        assert_eq!(status, 200);
        assert_eq!(left(&shop, &device).await, None);
    })
    .await;
}

#[tokio::test]
async fn an_interval_beyond_all_bounds_leaves_the_device_online() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        for (number, interval) in [
            "9223372036854775807",
            "99999999999999999999999",
            "-9223372036854775808",
        ]
        .into_iter()
        .enumerate()
        {
            let device = shop.device(u32::try_from(number).expect("few") + 1).await;
            let variable = json!({
                "device": device.id, "name": "PLATFORM_SUPERVISOR_POLL_INTERVAL", "value": interval,
            });
            shop.ann.create("device_config_variable", variable).await;
            device.state().await;
            until_it_is(&shop, &device, "online").await;
            let remaining = left(&shop, &device).await.expect("a deadline");
            assert!(remaining > 60_000, "{interval}: {remaining}");
            assert_eq!(state(&shop, &device).await["api_heartbeat_state"], "online");
        }
    })
    .await;
}
