//! The log stream: its content, and that its readers do not affect each other.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tests::{DEADLINE, LogReader, Stage, Supervisor, guest, service, target};

#[tokio::test]
async fn lines_of_services_come_with_their_service_and_those_of_the_supervisor_without() {
    let device = Supervisor::on_wasm().start().await;
    let mut reader = device.read_logs().await;
    let program = guest("guest");
    device
        .set_target(&target(
            1,
            &[
                service(
                    "good",
                    &program,
                    &json!({"command": ["print-and-wait", "hello there"]}),
                ),
                service(
                    "bad",
                    &program,
                    &json!({"command": ["print-both", "oh fine", "oh dear"], "restart": "no"}),
                ),
            ],
        ))
        .await;
    let (mut good, mut bad, mut own) = (None, None, None);
    while good.is_none() || bad.is_none() || own.is_none() {
        let line = reader.next().await.expect("the stream goes on");
        match line["message"].as_str() {
            Some("hello there") => good = Some(line),
            Some("oh dear") => bad = Some(line),
            _ if line["isSystem"] == true => own = Some(line),
            _ => {}
        }
    }
    let (good, bad, own) = (good.unwrap(), bad.unwrap(), own.unwrap());
    assert_eq!(
        (&good["serviceName"], &good["serviceId"]),
        (&json!("good"), &json!(1))
    );
    assert_eq!(good.get("isStdErr"), None);
    assert_eq!(
        (&bad["serviceName"], &bad["isStdErr"]),
        (&json!("bad"), &json!(true))
    );
    assert_eq!(own.get("serviceName"), None);
    for line in [good, bad, own] {
        let timestamp = line["timestamp"].as_i64().unwrap();
        assert!(timestamp > 1_600_000_000_000, "milliseconds: {line}");
    }
}

#[tokio::test]
async fn a_slow_reader_loses_lines_with_a_notice_and_holds_up_nobody() {
    let device = Supervisor::on_wasm().start().await;
    let mut slow = device.read_logs().await;
    let mut fast = Vec::new();
    for _ in 0..20 {
        fast.push(device.read_logs().await);
    }
    let flood = service("flood", &guest("guest"), &json!({"command": ["flood"]}));
    device.set_target(&target(1, &[flood])).await;

    // All buffers between the device and the slow reader are full before one of the others has read this much.
    let enough = |reader: usize| if reader == 0 { 15_000 } else { 1_000 };
    let readers = fast
        .into_iter()
        .enumerate()
        .map(|(number, mut reader)| async move {
            for _ in 0..enough(number) {
                reader.next().await.expect("the stream goes on");
            }
        });
    futures::future::join_all(readers).await;
    assert_eq!(device.get("/ping").await.status, 200);

    // A burst may cost any reader a few hundred lines; the lines lost while it slept are reported in one notice or
    // several.
    let mut lost = 0;
    while lost <= 1_000 {
        let notice = slow.until_message("lines were lost").await;
        assert_eq!(notice["isSystem"], true);
        let message = notice["message"].as_str().unwrap();
        lost += message.split(' ').next().unwrap().parse::<u64>().unwrap();
    }
    // It continues with current lines.
    slow.next().await.expect("the stream goes on");
}

/// The number of services to start, unless `STARTS` sets another.
const STARTS: usize = 30;
/// How many of them are started at a time.
const AT_A_TIME: usize = 10;

/// Each line that services print as their first act is in the stream, however soon it comes after the start.
async fn nothing_is_lost(stage: Option<Stage>) {
    let Some(stage) = stage else { return };
    let image = stage.publish("prints");
    let mut reader = stage.device.read_logs().await;
    let starts = std::env::var("STARTS").map_or(STARTS, |starts| starts.parse().unwrap());
    let mut missing: BTreeSet<String> = BTreeSet::new();
    for round in 0..starts.div_ceil(AT_A_TIME) {
        let line = |number: usize| format!("line {number} of round {round}");
        let services = (1..=AT_A_TIME).map(|number| {
            let command = if stage.on_docker {
                json!([
                    "sh",
                    "-c",
                    format!("echo {}; exec sleep 1000", line(number))
                ])
            } else {
                json!(["print-and-wait", line(number)])
            };
            let service = json!({
                "serviceName": format!("prints{number}"), "image": image, "imageId": number,
                "command": command, "environment": {}, "labels": {}, "stop_grace_period": "1s",
            });
            (number.to_string(), service)
        });
        let services: serde_json::Map<String, Value> = services.collect();
        let target = json!({ "local": { "apps": { stage.app.to_string(): {
            "name": "prints", "commit": format!("c{round}"), "releaseId": round.to_string(),
            "services": services,
        } } } });
        missing.extend((1..=AT_A_TIME).map(line));
        stage.device.set_target(&target).await;
        let read = until_read(&mut reader, &mut missing);
        if tokio::time::timeout(DEADLINE, read).await.is_err() {
            panic!("lost: {missing:?}\n{}", stage.device.log());
        }
    }
    let nothing = json!({ "local": { "apps": {} } });
    stage.device.set_target(&nothing).await;
    stage.device.until_applied().await;
}

async fn until_read(reader: &mut LogReader, missing: &mut BTreeSet<String>) {
    while !missing.is_empty() {
        let line = reader.next().await.expect("the stream goes on");
        if let Some(message) = line["message"].as_str() {
            missing.remove(message);
        }
    }
}

#[tokio::test]
async fn concurrent_output_of_components_is_not_lost() {
    nothing_is_lost(Some(Stage::on_wasm(7160).await)).await;
}

#[tokio::test]
async fn concurrent_output_of_containers_is_not_lost() {
    nothing_is_lost(Stage::on_docker(7161).await).await;
}
