//! The data API over HTTP: envelopes, status codes and limits (docs/spec/cloud.md#odata-answers,
//! docs/spec/cloud.md#http-rules).

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::{Cloud, on_both, read};

#[tokio::test]
async fn the_operations_of_a_fleet_answer_as_the_page_says() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let fleet = ann.fleet("pump", "raspberrypi4-64").await;
        let at = format!("/v7/application({fleet})");
        let (status, body) = ann.get(&at).await;
        assert_eq!(status, StatusCode::OK);
        let row = &body["d"][0];
        assert_eq!(row["slug"], json!("admin/pump"));
        assert_eq!(row["should_track_latest_release"], json!(true));
        assert_eq!(row["should_be_running__release"], Value::Null);
        assert_eq!(row["organization"]["__id"], json!(1));
        for url in [
            "/v7/application(slug='admin/pump')?$select=id",
            "/v7/application(slug='admin%2Fpump')?$select=id",
            "/v7/application?$filter=app_name eq 'pump'&$select=id",
            "/v7/application?$filter=app_name%20eq%20%27pump%27&$select=id",
        ] {
            assert_eq!(ann.rows(url).await, [json!({ "id": fleet })], "{url}");
        }
        let body = json!({ "should_track_latest_release": "false" });
        let (status, body) = ann.send(Method::PATCH, &at, body).await;
        assert_eq!((status, body), (StatusCode::OK, Value::Null));
        let row = &ann
            .rows(&format!("{at}?$select=should_track_latest_release"))
            .await[0];
        assert_eq!(row["should_track_latest_release"], json!(false));
        let (status, body) = ann.answer(ann.ask(Method::DELETE, &at)).await;
        assert_eq!((status, body), (StatusCode::OK, Value::Null));
        assert_eq!(ann.rows(&at).await, Vec::<Value>::new());
        let (status, _) = ann.answer(ann.ask(Method::DELETE, &at)).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
    })
    .await;
}

#[tokio::test]
async fn a_created_row_is_answered_bare_with_its_place() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let device_type = ann
            .rows("/v7/device_type(slug='intel-nuc')?$select=id")
            .await[0]["id"]
            .clone();
        let body =
            json!({ "app_name": "valve", "organization": 1, "is_for__device_type": device_type });
        let answer = ann
            .ask(Method::POST, "/v7/application")
            .json(&body)
            .send()
            .await
            .expect("an answer");
        let place = answer.headers()["location"]
            .to_str()
            .expect("text")
            .to_owned();
        let (status, row) = read(answer).await;
        assert_eq!(status, StatusCode::CREATED);
        assert_eq!(row["app_name"], json!("valve"));
        assert_eq!(place, format!("/v7/application(@id)?@id={}", row["id"]));
        assert_eq!(ann.rows(&place).await.len(), 1);

        let twice = ann
            .send(Method::POST, "/v7/application", body.clone())
            .await;
        assert_eq!(twice.0, StatusCode::CONFLICT);
        assert!(
            twice.1.as_str().expect("text").contains("must be unique"),
            "{}",
            twice.1
        );

        let body =
            json!({ "app_name": "third", "organization": 1, "is_for__device_type": device_type });
        let (status, row) = ann
            .send(Method::POST, "/v7/application?returnResource=false", body)
            .await;
        assert_eq!(status, StatusCode::CREATED);
        assert_eq!(row.as_object().expect("an object").len(), 1, "{row}");
    })
    .await;
}

#[tokio::test]
async fn errors_are_json_strings_with_a_clear_status() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        for (path, status, says) in [
            ("/v7/device?$filter=nam eq 1", 400, "at character 19"),
            ("/v7/device?filter=id eq 3", 400, "is `$filter` meant?"),
            ("/v7/device?$filter=id eq", 400, "at character"),
            ("/v7/device?$top=-1", 400, "whole number"),
            ("/v7/device(", 400, "expected"),
            ("/v7/$batch", 404, "$batch"),
            ("/v8/device", 404, "/v8/device"),
        ] {
            let (got, body) = ann.get(path).await;
            assert_eq!(got.as_u16(), status, "{path}: {body}");
            assert!(body.as_str().expect(path).contains(says), "{path}: {body}");
        }
        for (path, status) in [("/v7/nothing", 401), ("/nothing", 404)] {
            let (got, body) = ann.get(path).await;
            assert_eq!((got.as_u16(), body), (status, Value::Null), "{path}");
        }
        for (method, path, body, status) in [
            (Method::PATCH, "/v7/device", json!({ "note": "x" }), 400),
            (Method::PATCH, "/v7/device(1)", json!({}), 400),
            (Method::PATCH, "/v7/device(1)", json!([]), 400),
            (
                Method::POST,
                "/v7/application",
                json!({ "app_name": "x" }),
                400,
            ),
            (Method::POST, "/v7/device(1)/canAccess", json!({}), 400),
            (
                Method::POST,
                "/v7/device(1)/canAccess",
                json!({ "method": "GET" }),
                401,
            ),
        ] {
            let (got, answer) = ann.send(method.clone(), path, body.clone()).await;
            assert_eq!(got.as_u16(), status, "{method} {path} {body}: {answer}");
        }
        let broken = ann
            .ask(Method::POST, "/v7/application")
            .header("content-type", "application/json");
        let (status, body) = ann.answer(broken.body("{\"app_name\":")).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body}");
        let text = ann
            .ask(Method::POST, "/v7/application")
            .header("content-type", "text/plain");
        let (status, _) = ann.answer(text.body("x")).await;
        assert_eq!(status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
        let long = ann
            .ask(Method::POST, "/v7/application")
            .header("content-type", "application/json");
        let (status, _) = ann.answer(long.body(vec![b' '; 9 << 20])).await;
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    })
    .await;
}

#[tokio::test]
async fn an_unchanged_answer_is_not_sent_twice_and_browsers_receive_cors_headers() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let path = "/v7/device_type?$select=slug";
        let first = ann.ask(Method::GET, path).send().await.expect("an answer");
        let tag = first.headers()["etag"].to_str().expect("text").to_owned();
        assert!(tag.starts_with("W/"), "{tag}");
        assert!(
            !first.headers().contains_key("access-control-allow-origin"),
            "no browser"
        );
        let again = ann.ask(Method::GET, path).header("if-none-match", &tag);
        assert_eq!(
            again.send().await.expect("it").status(),
            StatusCode::NOT_MODIFIED
        );

        let browser = |method| {
            let request = cloud.ask(method, path).header("user-agent", "Mozilla/5.0");
            request.header("origin", "https://dashboard.example")
        };
        let preflight = browser(Method::OPTIONS).send().await.expect("an answer");
        assert_eq!(preflight.status(), StatusCode::OK);
        assert!(
            preflight.headers()["access-control-allow-methods"]
                .to_str()
                .expect("text")
                .contains("PATCH")
        );
        let answer = browser(Method::GET).send().await.expect("an answer");
        assert_eq!(answer.headers()["access-control-allow-origin"], "*");
        assert!(
            answer.headers()["access-control-expose-headers"]
                .to_str()
                .expect("text")
                .contains("Retry-After")
        );
        assert!(answer.headers().contains_key("x-request-id"));
    })
    .await;
}

#[tokio::test]
async fn pages_of_other_origins_ask_without_what_a_browser_adds() {
    on_both(async |cloud| {
        for method in [Method::OPTIONS, Method::GET] {
            let request = cloud.ask(method, "/v7/device_type?$top=1");
            let request = request.header("user-agent", "Mozilla/5.0");
            let answer = request
                .header("origin", "https://evil.example")
                .send()
                .await;
            let answer = answer.expect("an answer");
            let headers = answer.headers();
            assert_eq!(headers["access-control-allow-origin"], "*");
            assert!(!headers.contains_key("access-control-allow-credentials"));
        }
    })
    .await;
}

#[tokio::test]
async fn a_caller_with_too_many_requests_learns_when_to_retry() {
    data::testing::on_fresh(async |url| {
        let cloud = Cloud::start_with(&url, "[limits]\nrequests_per_minute = 5").await;
        let ann = cloud.sign_in().await;
        for _ in 0..5 {
            assert_eq!(ann.get("/v7/device").await.0, StatusCode::OK);
        }
        let answer = ann
            .ask(Method::GET, "/v7/device")
            .send()
            .await
            .expect("an answer");
        assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
        let wait: u32 = answer.headers()["retry-after"]
            .to_str()
            .expect("text")
            .parse()
            .expect("seconds");
        assert!((1..=60).contains(&wait), "{wait}");
        let (status, _) = read(
            cloud
                .ask(Method::GET, "/v7/device_type")
                .send()
                .await
                .expect("it"),
        )
        .await;
        assert_eq!(status, StatusCode::OK, "somebody else");
    })
    .await;
}
