//! `/v3/locks`: what it shows, which locks a key covers, and what is refused.

use std::sync::Arc;
use std::time::Duration;

use model::{
    ApiLock, AppId, LockHolder, LockKind, LockRefusal, LockRequest, MAX_LOCK_REASON, UpdateLock,
};
use serde_json::{Value, json};

use super::router::failed;
use crate::LocalModeAuth;
use crate::fake::{FakeDevice, Fixture, TestAnswer, fixture, request, two_apps};

fn device(device: FakeDevice) -> Fixture {
    *device.status.lock().unwrap() = Arc::new(two_apps());
    fixture(device, LocalModeAuth::default())
}

fn lock(app: u64, service: &str, holder: LockHolder) -> UpdateLock {
    UpdateLock {
        app: AppId(app),
        service: (!service.is_empty()).then(|| service.parse().unwrap()),
        path: format!("/tmp/{app}").into(),
        holder,
        since_ms: Some(0),
    }
}

async fn ask(device: &Fixture, method: &str, path: &str, key: &str, body: &str) -> TestAnswer {
    let mut request = request(method, path, key);
    let json = "application/json".parse().unwrap();
    request.headers_mut().insert("content-type", json);
    *request.body_mut() = crate::Body::from(body.to_owned());
    device.ask(request).await
}

async fn put(device: &Fixture, path: &str, body: &Value) -> TestAnswer {
    ask(device, "PUT", path, &device.key, &body.to_string()).await
}

#[tokio::test]
async fn locks_are_shown_with_their_holder_to_who_may_see_the_app() {
    let api = ApiLock {
        reason: "writes flash".into(),
        ttl: Duration::from_secs(60),
        expires_ms: 60_000,
        survives_reboot: true,
    };
    let device = device(FakeDevice {
        locks: vec![
            lock(1, "db", LockHolder::Supervisor),
            lock(1, "web", LockHolder::Api(api)),
            lock(2, "web", LockHolder::File(LockKind::Folder)),
            UpdateLock {
                since_ms: None,
                ..lock(3, "", LockHolder::Unreadable("loop".into()))
            },
        ],
        ..FakeDevice::default()
    });
    let epoch = "1970-01-01T00:00:00.000Z";
    let all = json!([
        {"appId": 1, "service": "db", "holder": "supervisor", "path": "/tmp/1", "kind": "file",
         "since": epoch},
        {"appId": 1, "service": "web", "holder": "api", "path": "/tmp/1", "kind": "file",
         "since": epoch, "reason": "writes flash", "expires": "1970-01-01T00:01:00.000Z", "ttl": 60,
         "survivesReboot": true},
        {"appId": 2, "service": "web", "holder": "file", "path": "/tmp/2", "kind": "directory",
         "since": epoch},
        {"appId": 3, "holder": "unreadable", "path": "/tmp/3", "error": "loop"},
    ]);
    let locks = device.json("/v3/locks").await;
    assert_eq!(locks, json!({"status": "success", "locks": all}));

    let own = ask(&device, "GET", "/v3/locks", &device.shop_key, "").await;
    let own: Value = serde_json::from_str(&own.body).unwrap();
    assert_eq!(own["locks"], json!([all[0], all[1]]));
}

#[tokio::test]
async fn a_service_takes_a_lock_with_a_reason_and_a_time() {
    let device = device(FakeDevice::default());
    let web = |survives_reboot| LockRequest {
        app: AppId(1),
        service: "web".parse().unwrap(),
        reason: "writes flash".into(),
        ttl: Duration::from_secs(60),
        survives_reboot,
    };
    for (body, survives) in [
        (json!({"reason": "writes flash", "ttl": 60}), false),
        (
            json!({"reason": "writes flash", "ttl": "60", "survivesReboot": true}),
            true,
        ),
    ] {
        let answer = put(&device, "/v3/locks/1/web", &body).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let answer: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(answer["status"], "success");
        assert_eq!(answer["lock"]["survivesReboot"], survives);
        assert_eq!(answer["lock"]["expires"], "1970-01-01T00:01:00.000Z");
        let leased = std::mem::take(&mut *device.device.leased.lock().unwrap());
        assert_eq!(leased, [web(survives)]);
    }
    let response = ask(&device, "DELETE", "/v3/locks/1/web", &device.shop_key, "").await;
    assert_eq!(
        (response.status, response.body.as_str()),
        (200, r#"{"status":"success"}"#)
    );
    let given_back = device.device.given_back.lock().unwrap().clone();
    assert_eq!(given_back, [(AppId(1), "web".parse().unwrap())]);
}

#[tokio::test]
async fn a_wish_that_is_not_clear_takes_no_lock_and_says_which_field_is_wrong() {
    let device = device(FakeDevice::default());
    let good = json!({"reason": "r", "ttl": 60});
    let with = |field: &str, value: Value| {
        let mut body = good.clone();
        body[field] = value;
        body
    };
    for (field, values) in [
        (
            "reason",
            vec![
                json!(null),
                json!(""),
                json!("  "),
                json!(7),
                json!(["r"]),
                json!("two\nlines"),
                json!("x".repeat(MAX_LOCK_REASON + 1)),
            ],
        ),
        (
            "ttl",
            vec![
                json!(null),
                json!(0),
                json!(-1),
                json!(1.5),
                json!("soon"),
                json!(true),
                json!(604_801),
                json!(1e300),
            ],
        ),
        ("survivesReboot", vec![json!(null), json!(1), json!("yes")]),
        ("survives_reboot", vec![json!(true)]),
        ("force", vec![json!(true)]),
    ] {
        for value in values {
            let answer = put(&device, "/v3/locks/1/web", &with(field, value.clone())).await;
            assert_eq!(answer.status, 400, "{field} {value}: {answer:?}");
            assert!(answer.body.contains(&format!("`{field}`")), "{answer:?}");
        }
    }
    for (body, status) in [("", 400), ("{", 400), ("[]", 400), ("null", 400)] {
        let answer = ask(&device, "PUT", "/v3/locks/1/web", &device.key, body).await;
        assert_eq!(answer.status, status, "{body}");
    }
    assert!(device.device.leased.lock().unwrap().is_empty());
}

#[tokio::test]
async fn only_locks_of_services_that_are_there_and_of_the_own_app_are_reached() {
    let device = device(FakeDevice {
        lock_refusal: Some(LockRefusal::NotHeld("not held".into())),
        ..FakeDevice::default()
    });
    let good = json!({"reason": "r", "ttl": 60}).to_string();
    let unauthorized = failed(401, "Unauthorized");
    let no_service = failed(404, "app 1 has no service of that name");
    for (path, key, expected) in [
        (
            "/v3/locks/x/web",
            &device.key,
            failed(400, "Invalid app id"),
        ),
        (
            "/v3/locks/0/web",
            &device.key,
            failed(400, "Invalid app id"),
        ),
        (
            "/v3/locks/-1/web",
            &device.key,
            failed(400, "Invalid app id"),
        ),
        ("/v3/locks/2/web", &device.shop_key, unauthorized.clone()),
        ("/v3/locks/9/web", &device.shop_key, unauthorized),
        (
            "/v3/locks/9/web",
            &device.key,
            failed(404, "there is no app 9 on this device"),
        ),
        ("/v3/locks/1/nobody", &device.key, no_service.clone()),
        ("/v3/locks/1/w%65bs", &device.key, no_service.clone()),
        ("/v3/locks/1/..", &device.key, no_service),
    ] {
        for method in ["PUT", "DELETE"] {
            let answer = ask(&device, method, path, key, &good).await;
            assert_eq!(answer, expected, "{method} {path}");
        }
    }
    assert!(device.device.leased.lock().unwrap().is_empty());
    let missing = ask(&device, "PUT", "/v3/locks/1/web", "", &good).await;
    assert_eq!(missing.status, 401);
    let wrong = ask(&device, "POST", "/v3/locks/1/web", &device.key, &good).await;
    assert_eq!(wrong.status, 405);
    assert_eq!(wrong.allow.as_deref(), Some("DELETE, PUT"));
}

#[tokio::test]
async fn each_refusal_has_its_status() {
    let good = json!({"reason": "r", "ttl": 60}).to_string();
    for (refusal, status) in [
        (LockRefusal::HeldByFile("why".into()), 409),
        (LockRefusal::HeldBySupervisor("why".into()), 423),
        (LockRefusal::NotHeld("why".into()), 404),
        (LockRefusal::Failed("why".into()), 503),
    ] {
        let device = device(FakeDevice {
            lock_refusal: Some(refusal),
            ..FakeDevice::default()
        });
        for method in ["PUT", "DELETE"] {
            let answer = ask(&device, method, "/v3/locks/1/web", &device.key, &good).await;
            assert_eq!(answer, failed(status, "why"), "{method}");
        }
    }
}

#[tokio::test]
async fn the_lock_that_a_service_left_behind_can_be_given_back_by_its_app() {
    let device = device(FakeDevice::default());
    let response = ask(&device, "DELETE", "/v3/locks/1/left", &device.shop_key, "").await;
    assert_eq!(response.status, 200, "{response:?}");
}
