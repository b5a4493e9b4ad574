//! Whatever arrives over the bus, replicas continue.

use async_nats::Client;
use reqwest::{Method, StatusCode};
use serde_json::json;

use super::on_two;
use crate::device_logs::{LogReader, line, messages};
use crate::fake_device::{connect, known};
use crate::harness::read;
use crate::reach::proxy::{echo, send_device_request};
use crate::reach::push::variable;
use crate::reach::{until, until_connected};
use crate::shop::Shop;

async fn publish(client: &Client, subject: &str, payload: impl Into<Vec<u8>>) {
    let sent = client.publish(subject.to_owned(), payload.into().into());
    sent.await.expect("the server");
}

#[tokio::test]
async fn hostile_bytes_on_the_subjects_break_nothing() {
    on_two(async |two| {
        let shop = Shop::open(&two.a).await;
        let at_b = two.b.by(shop.ann.token.clone());
        let writer = shop.device(1).await;
        let device = known(&two.a, &shop.ann, shop.fleet).await;
        connect(&two.a, &device, echo()).await;
        until_connected(&at_b, device.id, true).await;
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
        let client = two.nats.client().await;

        let notifications = "fleet.news";
        let call = format!("fleet.device.{}.call", device.id);
        let log = format!("fleet.device.{}.log", writer.id);
        let long = vec![b'['; 900_000];
        let ids = vec![i64::MIN; 2000];
        for junk in [
            b"".to_vec(),
            b"\xff\xfe\x00".to_vec(),
            b"null".to_vec(),
            b"{\"from\":\"x\",\"what\":{\"effects\":[{\"DevicesChanged\":[\"1\"]}]}}".to_vec(),
            json!({ "from": "x", "what": { "effects": [{ "DevicesChanged": ids }, { "FleetsChanged": ids }] } })
                .to_string()
                .into_bytes(),
            json!({ "from": "x", "what": { "arrived": { "device": i64::MAX, "at": i64::MAX } } })
                .to_string()
                .into_bytes(),
            json!({ "from": "x", "what": { "connected": { "number": u64::MAX, "lost": true } } })
                .to_string()
                .into_bytes(),
            long,
        ] {
            for subject in [notifications, call.as_str(), log.as_str()] {
                publish(&client, subject, junk.clone()).await;
            }
        }
        // A call that would make us send to somebody else, and one whose caller speaks no known
        // protocol.
        for inbox in [notifications, "_INBOX.>", "_INBOX.a b", "$JS.API.STREAM.DELETE.fleet-log"] {
            let reply = client.request(call.clone(), inbox.to_owned().into());
            let waited = tokio::time::timeout(std::time::Duration::from_millis(200), reply);
            assert!(waited.await.is_err(), "no reply to {inbox}");
        }
        for _ in 0..20 {
            let inbox = client.new_inbox();
            let reply = client.request(call.clone(), inbox.into());
            let reply = reply.await.expect("a reply").payload;
            let to = std::str::from_utf8(&reply).expect("a subject").to_owned();
            for (number, bytes) in [(0_u64, &b"GET / HTTP/1.1\r\n\r\n"[..]), (1, &[0xff; 5000]), (7, b"x")] {
                let message = [&number.to_be_bytes()[..], bytes].concat();
                publish(&client, &to, message).await;
            }
            publish(&client, &to, "short").await;
        }
        // More simultaneous calls than one device accepts, none of which continues.
        for _ in 0..600 {
            let inbox = client.new_inbox();
            let reply = client.new_inbox();
            client
                .publish_with_reply(call.clone(), reply, inbox.into())
                .await
                .expect("the server");
        }
        client.flush().await.expect("the server");

        assert_eq!(send("two").await, StatusCode::CREATED);
        assert_eq!(follows.message().await, "two");
        assert_eq!(messages(&at_b, &writer, "").await, ["one", "two"]);
        variable(&at_b, "application", shop.fleet, "A").await;
        let ping = json!({ "deviceId": device.id, "method": "GET" });
        until("the device is reached", async || {
            let answer = read(send_device_request(&at_b, "/ping", ping.clone()).await).await;
            (answer == (StatusCode::OK, json!("OK"))).then_some(())
        })
        .await;
    })
    .await;
}
