//! A device's log.

use http::StatusCode;
use reqwest::Method;
use serde_json::{Value, json};

use super::page;
use crate::dashboard::{ann, with_browser};
use crate::shop::{Device, Shop};

/// Makes a device write log lines of a service.
async fn write(device: &Device<'_>, service: Option<i64>, messages: &[&str]) {
    let lines: Vec<Value> = messages
        .iter()
        .map(|message| {
            let mut line = json!({ "message": message, "timestamp": 1_700_000_000_000_i64 });
            match service {
                Some(service) => line["serviceId"] = json!(service),
                None => line["isSystem"] = json!(true),
            }
            line
        })
        .collect();
    let path = format!("/device/v2/{}/logs", device.uuid);
    let (status, why) = device.signed.send(Method::POST, &path, json!(lines)).await;
    assert_eq!(status, StatusCode::CREATED, "{why}");
}

#[tokio::test]
async fn lines_are_there_and_come_of_one_service_or_with_some_words() {
    with_browser(async |cloud, chromium| {
        let shop = Shop::open(&cloud).await;
        let device = shop.device(7).await;
        let [main, side] = shop.services;
        write(&device, Some(main), &["first of main"]).await;
        write(&device, None, &["of the device"]).await;
        let ann = ann(chromium, &cloud).await;
        ann.open(&page(&device)).await;
        let log = ann.within("Log lines");
        log.see("22:13:20 main first of main").await;
        log.see("device of the device").await;
        write(&device, Some(side), &["live of side"]).await;
        log.see("side live of side").await;

        ann.within("Log").choose("Service", "main").await;
        log.not_see("live of side").await;
        log.see("first of main").await;
        write(&device, Some(side), &["hidden of side"]).await;
        write(&device, Some(main), &["second of main"]).await;
        log.see("second of main").await;
        log.not_see("hidden of side").await;
        ann.within("Log").choose("Service", "All services").await;
        log.see("hidden of side").await;
        ann.within("Log")
            .fill("Only lines containing", "SECOND")
            .await;
        log.not_see("first of main").await;
        log.see("second of main").await;
        ann.within("Log").fill("Only lines containing", "").await;
        log.see("first of main").await;

        ann.press("Pause").await;
        write(&device, Some(main), &["while held up", "and another"]).await;
        ann.see("2 new lines").await;
        log.not_see("while held up").await;
        ann.press("Follow").await;
        log.see("while held up").await;
        ann.can_press("Pause").await;
        ann.leave().await;
    })
    .await;
}

#[tokio::test]
async fn lines_are_text_and_bounded_and_can_be_downloaded() {
    with_browser(async |cloud, chromium| {
        let shop = Shop::open(&cloud).await;
        let device = shop.device(7).await;
        let main = Some(shop.services[0]);
        let hostile = "<script>alert(1)</script><img src=x onerror=alert(2)>";
        write(
            &device,
            main,
            &[hostile, "\u{1b}[31mred\u{1b}[0m\r\ndata: two"],
        )
        .await;
        let ann = ann(chromium, &cloud).await;
        ann.open(&page(&device)).await;
        let log = ann.within("Log lines");
        log.see(hostile).await;
        log.see("main red data: two").await;
        write(&device, main, &[&format!("live {hostile}")]).await;
        log.see(&format!("live {hostile}")).await;
        let address = ann
            .script("document.querySelector('[data-log] a[download]').href")
            .await;
        let fetch = format!("fetch({address}).then(it => it.text())");
        let text = ann.script(&fetch).await;
        let text = text.as_str().expect("a text");
        assert!(
            text.contains(&format!("2023-11-14T22:13:20.000Z main {hostile}\n")),
            "{text}"
        );

        // As many as are stored, and further new ones.
        let many = data::testing::sql(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200) \
             INSERT INTO device_log (device, created_at, timestamp, message, is_system, is_std_err) \
             SELECT ?, ?, 1700000000000 + i, 'line ' || i || ' of many', 0, 0 FROM n",
        );
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now = i64::try_from(now.expect("a time").as_millis()).expect("a time");
        shop.execute(many.with(device.id).with(now)).await;
        ann.reload().await;
        log.see("line 1200 of many").await;
        log.not_see(hostile).await;
        for batch in 0..5 {
            let some: Vec<String> = (0..10).map(|at| format!("live {batch} {at}")).collect();
            let some: Vec<&str> = some.iter().map(String::as_str).collect();
            write(&device, main, &some).await;
        }
        log.see("live 4 9").await;
        let count = "document.querySelector('[data-lines]').childElementCount";
        assert!(ann.script(count).await.as_i64().expect("a number") <= 1000);
        ann.looks_well("device-log").await;
        ann.leave().await;
    })
    .await;
}
