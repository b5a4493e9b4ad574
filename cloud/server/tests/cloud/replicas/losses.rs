//! A replica that is killed, and a bus that fails and comes back: nothing that was acknowledged is lost.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::any;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{Replicas, on_two};
use crate::dashboard::session::{cookie, page};
use crate::device_logs::{LogReader, line, messages};
use crate::fake_device::{connect, known};
use crate::harness::{PATIENCE, read};
use crate::reach::proxy::{echo, send_device_request};
use crate::reach::push::{next, update_listener, variable};
use crate::reach::{silent, until, until_connected};
use crate::shop::Shop;

/// The acknowledged lines.
#[derive(Default)]
struct AcknowledgedNames {
    lines: Mutex<Vec<String>>,
    variables: Mutex<Vec<String>>,
    reports: Mutex<Vec<String>>,
}

/// Sends one line after the other until nobody answers.
async fn until_nobody_answers(
    list: &Mutex<Vec<String>>,
    request: impl Fn(&str) -> reqwest::RequestBuilder,
) {
    for number in 0.. {
        let name = format!("n{number}");
        let Ok(answer) = request(&name).send().await else {
            return;
        };
        let status = answer.status();
        // An answer counts only when it is complete.
        if answer.bytes().await.is_err() {
            return;
        }
        if status.is_success() {
            list.lock().expect("a list").push(name);
        } else {
            // At the start, the stream of lines may not exist yet.
            assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        }
    }
}

#[tokio::test]
async fn writes_that_a_killed_replica_acknowledged_are_visible_at_the_others() {
    on_two(async |two| {
        let shop = Shop::open(&two.a).await;
        let device = shop.device(1).await;
        let at_b = two.b.by(shop.ann.token.clone());
        let connected = known(&two.a, &shop.ann, shop.fleet).await;
        let silent_one = known(&two.a, &shop.ann, shop.fleet).await;
        for device in [&connected, &silent_one] {
            connect(&two.a, device, silent()).await;
            until_connected(&at_b, device.id, true).await;
        }

        let acknowledged = AcknowledgedNames::default();
        let stream = format!("/device/v2/{}/log-stream", device.uuid);
        let lines = until_nobody_answers(&acknowledged.lines, |name| {
            let request = device.signed.ask(Method::POST, &stream);
            request
                .header("content-type", "application/x-ndjson")
                .body(format!("{}\n", line(name)))
        });
        let variables = until_nobody_answers(&acknowledged.variables, |name| {
            let body = json!({ "device": device.id, "name": name, "value": "1" });
            let path = "/v7/device_environment_variable";
            shop.ann.ask(Method::POST, path).json(&body)
        });
        let reports = until_nobody_answers(&acknowledged.reports, |name| {
            let body = json!({ &device.uuid: { "status": name } });
            let path = "/device/v3/state";
            device.signed.ask(Method::PATCH, path).json(&body)
        });
        let killed = async {
            until("a load", async || {
                let enough = |list: &Mutex<Vec<String>>| list.lock().expect("a list").len() >= 20;
                let all = enough(&acknowledged.lines)
                    && enough(&acknowledged.variables)
                    && enough(&acknowledged.reports);
                all.then_some(())
            })
            .await;
            two.a.kill();
            Instant::now()
        };
        let ((), (), (), killed) = tokio::join!(lines, variables, reports, killed);

        let there = messages(&at_b, &device, "").await;
        for line in acknowledged.lines.lock().expect("a list").iter() {
            assert_eq!(
                there.iter().filter(|found| *found == line).count(),
                1,
                "{line}"
            );
        }
        let rows = at_b
            .rows("/v7/device_environment_variable?$select=name")
            .await;
        for name in acknowledged.variables.lock().expect("a list").iter() {
            assert!(rows.iter().any(|row| row["name"] == *name), "{name}");
        }
        let last = acknowledged.reports.lock().expect("a list").len();
        let path = format!("/v7/device({})?$select=status", device.id);
        let status = at_b.rows(&path).await[0]["status"].clone();
        // Or the one that was not acknowledged.
        let expected = [format!("n{}", last - 1), format!("n{last}")];
        assert!(
            expected.iter().any(|one| status == *one),
            "{status}: {expected:?}"
        );

        // A device reconnects to a remaining replica, and can be reached there at once.
        connect(&two.b, &connected, echo()).await;
        let body = json!({ "deviceId": connected.id, "method": "GET" });
        until("the device is reached at B", async || {
            let answer = read(send_device_request(&at_b, "/ping", body.clone()).await).await;
            (answer == (StatusCode::OK, json!("OK"))).then_some(())
        })
        .await;
        // Requests to a device that does not reconnect fail, and it counts as offline after a while.
        let body = json!({ "deviceId": silent_one.id, "method": "GET" });
        let (status, _) = read(send_device_request(&at_b, "/ping", body).await).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        let path = format!("/v7/device({})?$select=is_connected_to_vpn", silent_one.id);
        while at_b.rows(&path).await[0]["is_connected_to_vpn"] != false {
            assert!(killed.elapsed() < Duration::from_secs(80), "it is away");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        until_connected(&at_b, connected.id, true).await;
        let again = two.another().await;
        let by = again.by(shop.ann.token.clone());
        assert_eq!(messages(&by, &device, "").await, there);
    })
    .await;
}

#[tokio::test]
async fn a_caller_gets_an_error_if_the_replica_that_holds_the_device_is_killed() {
    on_two(async |two| {
        let (at_a, at_b) = (two.a.sign_in().await, two.b.sign_in().await);
        let fleet = at_a.fleet("pump", "raspberrypi4-64").await;
        let device = known(&two.a, &at_a, fleet).await;
        let request_arrived = Arc::new(Notify::new());
        let hears = request_arrived.clone();
        let never = any(async move || {
            hears.notify_one();
            std::future::pending::<()>().await
        });
        connect(&two.a, &device, Router::new().route("/ping", never)).await;
        until_connected(&at_b, device.id, true).await;
        let waits = send_device_request(&at_b, "/ping", json!({ "deviceId": device.id }));
        let killed = async {
            request_arrived.notified().await;
            two.a.kill();
        };
        // Long before the device's time limit.
        let (answer, ()) = tokio::time::timeout(PATIENCE, async { tokio::join!(waits, killed) })
            .await
            .expect("an answer in time");
        let (status, why) = read(answer).await;
        assert_eq!(status, StatusCode::BAD_GATEWAY);
        assert_eq!(why, json!("the connection to the device was lost"));
    })
    .await;
}

#[tokio::test]
async fn while_the_bus_is_away_a_replica_says_so_and_goes_on() {
    on_two(async |mut two| {
        let ann = two.a.sign_in().await;
        let fleet = ann.fleet("pump", "raspberrypi4-64").await;
        let device = known(&two.a, &ann, fleet).await;
        let cookie = cookie(&two.a).await;
        let log = format!("/dashboard/devices/{}", device.uuid);
        let unread = "The log cannot be read at the moment.";
        let health = async || {
            let answer = two.a.ask(Method::GET, "/health").send().await;
            read(answer.expect("an answer")).await
        };
        let says = |status: &str| {
            let checks =
                json!({ "database": [{ "status": "pass" }], "bus": [{ "status": status }] });
            (
                StatusCode::OK,
                json!({ "status": status, "checks": checks }),
            )
        };
        until("the bus is there", async || {
            let there = health().await == says("pass");
            let (_, page) = page(&two.a, &cookie, &log).await;
            (there && !page.contains(unread)).then_some(())
        })
        .await;
        two.nats.kill();
        until("the bus cannot be reached", async || {
            let away = health().await == says("warn");
            let (status, page) = page(&two.a, &cookie, &log).await;
            assert_eq!(status, StatusCode::OK);
            (away && page.contains(unread)).then_some(())
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn a_bus_that_was_away_and_is_back_needs_nobody_to_be_restarted() {
    on_two(async |mut two| {
        let Replicas { nats, a, b, .. } = &mut two;
        let shop = Shop::open(a).await;
        let at_b = b.by(shop.ann.token.clone());
        let writer = shop.device(1).await;
        let device = known(a, &shop.ann, shop.fleet).await;
        let (router, mut hears) = update_listener();
        let router = router.merge(Router::new().route("/ping", any(async || "OK")));
        connect(a, &device, router).await;
        until_connected(&at_b, device.id, true).await;
        next(&mut hears).await;
        let path = format!("/device/v2/{}/logs", writer.uuid);
        let send = async |message: &str| {
            let lines = json!([line(message)]);
            writer.signed.send(Method::POST, &path, lines).await.0
        };
        until("lines are kept", async || {
            (send("one").await == StatusCode::CREATED).then_some(())
        })
        .await;
        let mut follows = LogReader::open(&at_b, &writer, "").await;
        assert_eq!(send("two").await, StatusCode::CREATED);
        assert_eq!(follows.message().await, "two");
        let key_at_b = b.by(device.key.clone());
        let state = format!("/device/v3/{}/state", device.uuid);
        assert_eq!(key_at_b.get(&state).await.0, StatusCode::OK);

        nats.kill();
        let ping = json!({ "deviceId": device.id, "method": "GET" });
        until("B knows that it reaches nobody", async || {
            let (status, _) = read(send_device_request(&at_b, "/ping", ping.clone()).await).await;
            (status == StatusCode::SERVICE_UNAVAILABLE).then_some(())
        })
        .await;
        // Requests that need no other replica continue.
        let (status, _) = read(send_device_request(&shop.ann, "/ping", ping.clone()).await).await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(send("lost").await, StatusCode::SERVICE_UNAVAILABLE);
        variable(&at_b, "device", device.id, "WHILE_AWAY").await;
        let other = known(a, &shop.ann, shop.fleet).await;
        let other_at_b = b.by(other.key.clone());
        let other_state = format!("/device/v3/{}/state", other.uuid);
        assert_eq!(other_at_b.get(&other_state).await.0, StatusCode::OK);
        let key = format!("/v7/api_key?$filter=is_of__actor eq {}", other.actor);
        let (status, _) = shop.ann.answer(shop.ann.ask(Method::DELETE, &key)).await;
        assert_eq!(status, StatusCode::OK);
        let refused = other_at_b.get(&other_state).await;
        assert_eq!(
            refused,
            (StatusCode::UNAUTHORIZED, Value::Null),
            "nothing is remembered"
        );

        nats.begin();
        until("B reaches the device", async || {
            let (status, _) = read(send_device_request(&at_b, "/ping", ping.clone()).await).await;
            (status == StatusCode::OK).then_some(())
        })
        .await;
        // It received no notifications while the bus was down, so it is notified of possible changes.
        next(&mut hears).await;
        until("lines are kept again", async || {
            (send("three").await == StatusCode::CREATED).then_some(())
        })
        .await;
        assert_eq!(follows.message().await, "three");
        let kept = messages(&at_b, &writer, "").await;
        assert_eq!(kept, ["one", "two", "three"]);
        while hears.try_recv().is_ok() {}
        variable(&at_b, "device", device.id, "AFTERWARDS").await;
        next(&mut hears).await;
    })
    .await;
}

#[tokio::test]
async fn replicas_that_start_before_the_bus_use_it_once_it_is_there() {
    on_two(async |mut two| {
        two.nats.kill();
        let third = two.another().await;
        let ann = third.sign_in().await;
        let fleet = ann.fleet("pump", "raspberrypi4-64").await;
        let device = known(&third, &ann, fleet).await;
        connect(&third, &device, echo()).await;
        until_connected(&ann, device.id, true).await;
        two.nats.begin();
        let at_a = two.a.by(ann.token.clone());
        let ping = json!({ "deviceId": device.id, "method": "GET" });
        until("A reaches the device", async || {
            let (status, _) = read(send_device_request(&at_a, "/ping", ping.clone()).await).await;
            (status == StatusCode::OK).then_some(())
        })
        .await;
    })
    .await;
}
