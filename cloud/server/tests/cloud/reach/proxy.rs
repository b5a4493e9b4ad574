//! `POST /supervisor/<url>`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::response::IntoResponse as _;
use axum::routing::{any, get};
use data::testing::{on_fresh, sql};
use futures::{StreamExt as _, stream};
use http::header::CONTENT_TYPE;
use http::{Method, StatusCode};
use http_body_util::BodyExt as _;
use reqwest::Response;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{silent, until, until_connected};
use crate::fake_device::{KnownDevice, connect, known};
use crate::harness::{ApiCaller, Cloud, PATIENCE, on_both, read};
use crate::shop::Shop;

pub(crate) const PIECE: usize = 16 << 10;

/// Creates a supervisor that answers with the request.
pub(crate) fn echo() -> Router {
    let say = async |request: Request| {
        let (head, body) = request.into_parts();
        let body = body.collect().await.expect("a body").to_bytes();
        let answer = json!({
            "method": head.method.as_str(),
            "target": head.uri.path_and_query().map(ToString::to_string),
            "type": head.headers.get(CONTENT_TYPE).map(|kind| kind.to_str().expect("text")),
            "authorization": head.headers.contains_key("authorization"),
            "body": String::from_utf8_lossy(&body),
        });
        axum::Json(answer).into_response()
    };
    Router::new()
        .route("/ping", any(async || "OK"))
        .route(
            "/v1/locked",
            any(async || {
                let body = axum::Json(json!({ "Data": "", "Error": "Updates are locked" }));
                (StatusCode::LOCKED, body)
            }),
        )
        .route("/v1/nothing", any(async || StatusCode::NO_CONTENT))
        .route(
            "/v1/picture",
            any(async || ([(CONTENT_TYPE, "image/png")], "PNG")),
        )
        .route(
            "/v1/page",
            any(async || ([(CONTENT_TYPE, "text/html")], "<script>1</script>")),
        )
        .fallback(say)
}

pub(crate) async fn send_device_request(by: &ApiCaller<'_>, path: &str, body: Value) -> Response {
    let request = by
        .ask(Method::POST, &format!("/supervisor{path}"))
        .json(&body);
    request.send().await.expect("an answer")
}

/// Creates a connected device of a fleet.
async fn connected(cloud: &Cloud, ann: &ApiCaller<'_>, fleet: i64, router: Router) -> KnownDevice {
    let device = known(cloud, ann, fleet).await;
    connect(cloud, &device, router).await;
    let body = json!({ "deviceId": device.id, "method": "GET" });
    until("the device is reached", async || {
        let answer = send_device_request(ann, "/ping", body.clone()).await;
        (answer.status() != StatusCode::NOT_FOUND
            || answer.headers().contains_key("x-content-type-options"))
        .then_some(())
    })
    .await;
    device
}

#[tokio::test]
async fn the_cloud_passes_a_request_to_the_device_and_its_answer_back() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let fleet = ann.fleet("pump", "raspberrypi4-64").await;
        let device = connected(&cloud, &ann, fleet, echo()).await;
        let key = "apikey=secret+of+the+supervisor";
        for (path, body, method, target, sent) in [
            ("/v1/blink", json!({ "uuid": device.uuid }), "POST", format!("/v1/blink?{key}"), ""),
            (
                "/v2/containerId?service=a%20b&apikey=mine",
                json!({ "deviceId": device.id.to_string(), "method": "get" }),
                "GET",
                format!("/v2/containerId?service=a%20b&{key}"),
                "",
            ),
            (
                "/v1/device/host-config",
                json!({ "appId": fleet, "method": "patch", "data": { "network": { "force": true } } }),
                "PATCH",
                format!("/v1/device/host-config?{key}"),
                r#"{"network":{"force":true}}"#,
            ),
        ] {
            // A key in the address belongs to the caller: here, a session is in the header.
            let path = path.replace("apikey=mine", &format!("apikey={}", ann.token));
            let (status, answer) = read(send_device_request(&ann, &path, body.clone()).await).await;
            assert_eq!(status, StatusCode::OK, "{body}");
            let kind = (!sent.is_empty()).then_some("application/json");
            let expected = json!({
                "method": method, "target": target, "type": kind, "authorization": false, "body": sent,
            });
            assert_eq!(answer, expected, "{body}");
        }

        let one = json!({ "deviceId": device.id });
        let ping = send_device_request(&ann, "/ping", one.clone()).await;
        assert_eq!(ping.headers()[CONTENT_TYPE], "text/plain; charset=utf-8");
        assert_eq!(read(ping).await, (StatusCode::OK, json!("OK")));
        let locked = read(send_device_request(&ann, "/v1/locked", one.clone()).await).await;
        assert_eq!(locked, (StatusCode::LOCKED, json!({ "Data": "", "Error": "Updates are locked" })));
        let nothing = read(send_device_request(&ann, "/v1/nothing", one.clone()).await).await;
        assert_eq!(nothing, (StatusCode::NO_CONTENT, Value::Null));
        let picture = read(send_device_request(&ann, "/v1/picture", one.clone()).await).await;
        let bad = json!({ "error": "Bad API response from supervisor" });
        assert_eq!(picture, (StatusCode::INTERNAL_SERVER_ERROR, bad));
        let page = send_device_request(&ann, "/v1/page", one).await;
        assert_eq!(page.headers()["content-security-policy"], "default-src 'none'; sandbox");
        let head = json!({ "deviceId": device.id, "method": "HEAD" });
        assert_eq!(read(send_device_request(&ann, "/ping", head).await).await, (StatusCode::OK, Value::Null));
    })
    .await;
}

#[tokio::test]
async fn only_callers_who_may_read_variables_get_them_from_a_device() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let device = connected(&cloud, &shop.ann, shop.fleet, echo()).await;
        let eve = json!({
            "username": "eve", "email": "eve@other.example", "password": "battery horse",
        });
        let (status, _) = shop.ann.send(Method::POST, "/user/register", eve).await;
        assert_eq!(status, StatusCode::CREATED);
        let given = json!({ "username": "eve", "password": "battery horse" });
        let token = cloud.ask(Method::POST, "/login_").json(&given).send().await;
        let eve = cloud.by(token.expect("an answer").text().await.expect("a token"));
        for (role, reads, writes) in [
            ("observer", StatusCode::FORBIDDEN, StatusCode::FORBIDDEN),
            ("operator", StatusCode::FORBIDDEN, StatusCode::OK),
            ("developer", StatusCode::OK, StatusCode::OK),
        ] {
            let share = sql(
                "INSERT INTO user_application_membership (created_at, modified_at, \"user\", is_member_of__application, \
                 application_membership_role) SELECT 1, 1, u.id, ?, r.id FROM \"user\" AS u, \
                 application_membership_role AS r WHERE u.username = 'eve' AND r.name = ?",
            );
            shop.execute(share.with(shop.fleet).with(role)).await;
            for whom in [json!({ "deviceId": device.id }), json!({ "appId": shop.fleet })] {
                for (method, path, expected) in [
                    ("GET", "/v1/device", StatusCode::OK),
                    ("GET", "/V2/containerID", StatusCode::OK),
                    ("HEAD", "/v2/applications/17/state", StatusCode::OK),
                    ("GET", "/v1/apps/17", reads),
                    ("HEAD", "/v1/apps/17", reads),
                    ("GET", "/v2/local/target-state", reads),
                    ("GET", "/v2/applications/../../v1/apps/17/state", reads),
                    ("GET", "/v3/something/of/a/plugin", reads),
                    ("POST", "/v1/blink", writes),
                ] {
                    let mut body = whom.clone();
                    body["method"] = method.into();
                    let (status, text) = read(send_device_request(&eve, path, body).await).await;
                    assert_eq!(status, expected, "{role} {method} {path} {whom}: {text}");
                }
            }
            shop.execute(sql("DELETE FROM user_application_membership")).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_user_without_access_finds_no_device_and_a_reader_may_not_change_it() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let fleet = ann.fleet("pump", "raspberrypi4-64").await;
        let device = connected(&cloud, &ann, fleet, echo()).await;
        let away = known(&cloud, &ann, fleet).await;
        let itself = cloud.by(device.key.clone());
        let other = cloud.by(away.key.clone());
        let none = json!("No online device(s) found");
        for (by, body, status, message) in [
            (&ann, json!({ "deviceId": away.id }), 404, Some(&none)),
            (&ann, json!({ "deviceId": 99_999 }), 404, Some(&none)),
            (&ann, json!({ "uuid": "ab".repeat(16) }), 404, Some(&none)),
            (
                &ann,
                json!({ "appId": fleet, "deviceId": away.id }),
                404,
                Some(&none),
            ),
            (
                &ann,
                json!({ "appId": fleet + 1, "deviceId": device.id }),
                404,
                Some(&none),
            ),
            (&ann, json!({}), 400, None),
            (
                &ann,
                json!({ "deviceId": device.id, "method": "OPTIONS" }),
                400,
                None,
            ),
            (
                &ann,
                json!({ "deviceId": device.id, "data": "x" }),
                400,
                None,
            ),
            // Services of the device use the device's own key.
            (&itself, json!({ "uuid": device.uuid }), 200, None),
            (
                &itself,
                json!({ "appId": fleet, "method": "GET" }),
                200,
                None,
            ),
            (&itself, json!({ "appId": fleet }), 403, None),
            (
                &other,
                json!({ "uuid": device.uuid, "method": "GET" }),
                404,
                Some(&none),
            ),
            (
                &cloud.by("nobody's".to_owned()),
                json!({ "uuid": device.uuid }),
                401,
                None,
            ),
        ] {
            let (found, text) = read(send_device_request(by, "/ping", body.clone()).await).await;
            assert_eq!(found.as_u16(), status, "{body}: {text}");
            if let Some(message) = message {
                assert_eq!(text, *message, "{body}");
            }
        }
        let nobody = cloud
            .ask(Method::POST, "/supervisor/ping")
            .json(&json!({ "uuid": device.uuid }));
        assert_eq!(
            read(nobody.send().await.expect("an answer")).await.0,
            StatusCode::UNAUTHORIZED
        );
    })
    .await;
}

#[tokio::test]
async fn a_fleet_answers_with_a_list_of_what_each_device_says() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let fleet = ann.fleet("pump", "raspberrypi4-64").await;
        let endless = || {
            Body::from_stream(stream::repeat_with(|| {
                Ok::<_, std::io::Error>(vec![b'x'; PIECE])
            }))
        };
        let flood = Router::new().route(
            "/v1/device",
            get(async move || ([(CONTENT_TYPE, "application/json")], endless())),
        );
        let plain = Router::new().route(
            "/v1/device",
            get(async || axum::Json(json!({ "status": "Idle" }))),
        );
        let broken = Router::new().route(
            "/v1/device",
            get(async || ([(CONTENT_TYPE, "application/json")], "{")),
        );
        for router in [plain, echo(), silent(), broken, flood] {
            connected(&cloud, &ann, fleet, router).await;
        }
        known(&cloud, &ann, fleet).await;
        let body = json!({ "appId": fleet, "method": "GET" });
        let (status, list) = read(send_device_request(&ann, "/v1/device", body).await).await;
        assert_eq!(status, StatusCode::MULTI_STATUS);
        let list = list.as_array().expect("a list").clone();
        let statuses: Vec<_> = list
            .iter()
            .map(|entry| entry["statusCode"].as_u64())
            .collect();
        assert_eq!(
            statuses,
            [Some(200), Some(200), Some(404), Some(500), Some(502)],
            "{list:?}"
        );
        assert_eq!(list[0]["body"], json!({ "status": "Idle" }));
        assert_eq!(list[1]["body"]["method"], "GET");
        assert_eq!(list[2]["body"], "");
        assert_eq!(
            list[3]["body"],
            json!({ "error": "Bad API response from supervisor" })
        );
    })
    .await;
}

#[tokio::test]
async fn lines_come_as_the_device_writes_them() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let fleet = ann.fleet("pump", "raspberrypi4-64").await;
        let (write, lines) = mpsc::channel::<&'static str>(1);
        let lines = Arc::new(tokio::sync::Mutex::new(lines));
        let journal = Router::new().route(
            "/v2/journal-logs",
            any(async move || {
                let lines = stream::unfold(lines, async |lines| {
                    let line = lines.lock().await.recv().await?;
                    Some((Ok::<_, std::io::Error>(line), lines))
                });
                (
                    [(CONTENT_TYPE, "application/x-ndjson")],
                    Body::from_stream(lines),
                )
            }),
        );
        let device = connected(&cloud, &ann, fleet, journal).await;
        let body = json!({ "deviceId": device.id, "data": { "follow": true } });
        let request = ann
            .ask(Method::POST, "/supervisor/v2/journal-logs")
            .json(&body);
        let answer = request
            .header("accept-encoding", "gzip")
            .send()
            .await
            .expect("an answer");
        assert_eq!(answer.headers()[CONTENT_TYPE], "application/x-ndjson");
        let mut read = answer.bytes_stream();
        for line in ["{\"a\":1}\n", "{\"b\":2}\n"] {
            write.send(line).await.expect("a reader");
            let found = read.next().await.expect("a line").expect("bytes");
            assert_eq!(found, line.as_bytes());
        }
        drop(write);
        assert!(read.next().await.is_none(), "the end");
    })
    .await;
}

/// A device whose answer never ends: how many pieces it has sent, and whether they are still read.
#[derive(Clone, Default)]
pub(crate) struct Flood {
    pieces: Arc<AtomicUsize>,
    dropped: Arc<AtomicBool>,
}

struct DropRecorder(Arc<AtomicBool>);

impl Drop for DropRecorder {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Flood {
    pub(crate) fn router(&self) -> Router {
        let this = self.clone();
        Router::new().route(
            "/flood",
            any(async move || {
                let gone = DropRecorder(this.dropped);
                let pieces = stream::repeat_with(move || {
                    let _held = &gone;
                    this.pieces.fetch_add(1, Ordering::SeqCst);
                    Ok::<_, std::io::Error>(Bytes::from(vec![b'x'; PIECE]))
                });
                ([(CONTENT_TYPE, "text/plain")], Body::from_stream(pieces))
            }),
        )
    }

    pub(crate) fn made(&self) -> usize {
        self.pieces.load(Ordering::SeqCst)
    }

    /// Whether the device has detected that nobody reads any more.
    pub(crate) fn is_dropped(&self) -> bool {
        self.dropped.load(Ordering::SeqCst)
    }
}

#[tokio::test]
async fn an_answer_of_any_length_is_read_as_fast_as_the_caller_reads_and_is_nowhere_kept() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let fleet = ann.fleet("pump", "raspberrypi4-64").await;
        let flood = Flood::default();
        let device = connected(&cloud, &ann, fleet, flood.router()).await;
        let before = cloud.memory();
        let answer = send_device_request(&ann, "/flood", json!({ "deviceId": device.id })).await;
        assert_eq!(answer.status(), StatusCode::OK);
        let mut read = answer.bytes_stream();
        read.next().await.expect("a piece").expect("bytes");
        // Without a reader, the device stops when sockets and windows are full.
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
        // The device still answers other requests.
        let ping = send_device_request(&ann, "/ping", json!({ "deviceId": device.id })).await;
        assert_eq!(ping.status(), StatusCode::NOT_FOUND, "of the device");
        let mut bytes = 0;
        // Twice as much as may be buffered.
        while bytes < 48 << 20 {
            bytes += read.next().await.expect("a piece").expect("bytes").len();
        }
        let grown = cloud.memory().saturating_sub(before);
        assert!(grown < 24 << 20, "{grown} bytes more than before");
        drop(read);
        until("the device hears that nobody reads", async || {
            flood.dropped.load(Ordering::SeqCst).then_some(())
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn a_device_that_goes_away_breaks_what_it_was_saying_and_nothing_else() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let fleet = ann.fleet("pump", "raspberrypi4-64").await;
        let (begun, mut has_begun) = mpsc::channel(1);
        let begins = Router::new()
            .route(
                "/half",
                any(async || {
                    let half =
                        stream::iter([Ok::<_, std::io::Error>("half")]).chain(stream::pending());
                    ([(CONTENT_TYPE, "text/plain")], Body::from_stream(half))
                }),
            )
            .route(
                "/never",
                any(async move || {
                    begun.send(()).await.expect("somebody");
                    std::future::pending::<()>().await;
                }),
            );
        let device = known(&cloud, &ann, fleet).await;
        let held = connect(&cloud, &device, begins).await;
        until_connected(&ann, device.id, true).await;
        let one = json!({ "deviceId": device.id });
        let half = send_device_request(&ann, "/half", one.clone()).await;
        assert_eq!(half.status(), StatusCode::OK);
        let (never, ()) = tokio::join!(send_device_request(&ann, "/never", one.clone()), async {
            has_begun.recv().await.expect("it was asked");
            held.abort();
        });
        let (status, why) = read(never).await;
        assert_eq!(
            (status, why),
            (
                StatusCode::BAD_GATEWAY,
                json!("the connection to the device was lost")
            )
        );
        half.bytes()
            .await
            .expect_err("it is cut off, and does not look whole");
        until_connected(&ann, device.id, false).await;
        let (status, _) = read(send_device_request(&ann, "/ping", one).await).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
    })
    .await;
}

#[tokio::test]
async fn a_fleet_is_restarted_by_each_of_its_devices_that_is_connected() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let fleet = ann.fleet("pump", "raspberrypi4-64").await;
        let path = format!("/application/{fleet}/restart");
        let (status, why) = ann.send(Method::POST, &path, json!({})).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{why}");
        connected(&cloud, &ann, fleet, echo()).await;
        connected(&cloud, &ann, fleet, echo()).await;
        let (status, list) = ann.send(Method::POST, &path, json!({})).await;
        assert_eq!(status, StatusCode::MULTI_STATUS, "{list}");
        let answers = list.as_array().expect("an answer a device");
        assert_eq!(answers.len(), 2);
        for one in answers {
            assert_eq!(one["statusCode"], 200);
            assert_eq!(one["body"]["method"], "POST");
            let target = one["body"]["target"].as_str().expect("text");
            assert!(target.starts_with("/v1/restart"), "{target}");
            assert_eq!(one["body"]["body"], json!({ "appId": fleet }).to_string());
        }
        let nobody = cloud
            .ask(Method::POST, &path)
            .send()
            .await
            .expect("an answer");
        assert_eq!(nobody.status(), StatusCode::UNAUTHORIZED);
    })
    .await;
}

#[tokio::test]
async fn a_device_that_does_not_answer_is_waited_for_as_long_as_the_settings_say() {
    on_fresh(async |url| {
        let cloud = Cloud::start_with(&url, "[reach]\nanswer_seconds = 1").await;
        let ann = cloud.sign_in().await;
        let fleet = ann.fleet("pump", "raspberrypi4-64").await;
        let device = known(&cloud, &ann, fleet).await;
        let never = Router::new().route("/ping", any(std::future::pending::<()>));
        connect(&cloud, &device, never).await;
        until_connected(&ann, device.id, true).await;
        let waits = send_device_request(&ann, "/ping", json!({ "deviceId": device.id }));
        let answer = tokio::time::timeout(PATIENCE, waits).await;
        let (status, why) = read(answer.expect("an answer in time")).await;
        assert_eq!(status, StatusCode::BAD_GATEWAY);
        assert_eq!(why, json!("the device did not answer within 1s"));
    })
    .await;
}

#[tokio::test]
async fn a_device_that_does_not_end_its_answer_holds_up_no_list_of_a_fleet() {
    on_fresh(async |url| {
        let cloud = Cloud::start_with(&url, "[reach]\nanswer_seconds = 1").await;
        let ann = cloud.sign_in().await;
        let fleet = ann.fleet("pump", "raspberrypi4-64").await;
        let half = || async {
            let half = stream::once(async { Ok::<_, std::io::Error>("{") });
            let body = Body::from_stream(half.chain(stream::pending()));
            ([(CONTENT_TYPE, "application/json")], body)
        };
        let half = Router::new().route("/ping", any(half));
        for router in [half, echo()] {
            let device = known(&cloud, &ann, fleet).await;
            connect(&cloud, &device, router).await;
            until_connected(&ann, device.id, true).await;
        }
        let list = async {
            read(send_device_request(&ann, "/ping", json!({ "appId": fleet })).await).await
        };
        let list = tokio::time::timeout(PATIENCE, list).await;
        let (status, list) = list.expect("a list in time");
        assert_eq!(status, StatusCode::MULTI_STATUS);
        let late = json!({ "statusCode": 502, "body": "the device did not answer within 1s" });
        assert_eq!(list, json!([late, { "statusCode": 200, "body": "OK" }]));
    })
    .await;
}
