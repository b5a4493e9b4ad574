//! Replicas whose clocks differ: only the database's clock counts.

use std::path::Path;

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::on_two;
use crate::fake_device::{connect, known};
use crate::harness::Cloud;
use crate::reach::{silent, until, until_connected};
use crate::shop::Shop;

/// Debian's libfaketime, which gives a program another time.
const FAKE_TIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";

#[tokio::test]
async fn a_replica_whose_clock_is_a_day_ahead_takes_nobody_for_gone() {
    if !Path::new(FAKE_TIME).exists() {
        println!("SKIPPED: there is no libfaketime, so no replica had another time");
        return;
    }
    on_two(async |two| {
        let shop = Shop::open(&two.a).await;
        let connected = known(&two.a, &shop.ann, shop.fleet).await;
        connect(&two.a, &connected, silent()).await;
        until_connected(&shop.ann, connected.id, true).await;
        let polling = shop.device(1).await;
        let path = format!("/device/v3/{}/state", polling.uuid);
        let (status, _) = polling.signed.get(&path).await;
        assert_eq!(status, StatusCode::OK);
        let heartbeat = async || {
            let row = shop.fields(&polling, "api_heartbeat_state").await;
            row["api_heartbeat_state"].clone()
        };
        until("the poll is noted", async || {
            (heartbeat().await == json!("online")).then_some(())
        })
        .await;

        let environment = [
            ("LD_PRELOAD", FAKE_TIME),
            ("FAKETIME", "+86400"),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ];
        let configuration = format!("bus = '{}'", two.nats.url());
        let ahead = Cloud::start_in(&two.database, &configuration, &environment).await;
        // It is: the times that it writes are tomorrow's.
        let by_it = ahead.by(shop.ann.token.clone());
        let fleet = by_it.fleet("tomorrow", "raspberrypi4-64").await;
        let made = by_it
            .rows(&format!("/v7/application({fleet})?$select=created_at"))
            .await;
        let made: jiff::Timestamp = made[0]["created_at"]
            .as_str()
            .expect("a time")
            .parse()
            .expect("a time");
        assert!(
            made.duration_since(jiff::Timestamp::now()).as_hours() >= 23,
            "{made}"
        );

        // Each updates its time, and checks for replicas that have not, several times.
        let times = async || -> Vec<Value> {
            let rows = shop
                .ann
                .rows("/v7/service_instance?$select=id,last_heartbeat&$orderby=id")
                .await;
            rows.iter()
                .map(|row| row["last_heartbeat"].clone())
                .collect()
        };
        for _ in 0..2 {
            let before = times().await;
            assert_eq!(before.len(), 3, "{before:?}");
            until("all have renewed their times", async || {
                let now = times().await;
                assert_eq!(now.len(), 3, "none is taken for gone: {now:?}");
                let path = format!("/v7/device({})?$select=is_connected_to_vpn", connected.id);
                let row = shop.ann.rows(&path).await;
                assert_eq!(row[0]["is_connected_to_vpn"], json!(true));
                now.iter()
                    .zip(&before)
                    .all(|(now, before)| now != before)
                    .then_some(())
            })
            .await;
        }
        assert_eq!(heartbeat().await, json!("online"));
    })
    .await;
}
