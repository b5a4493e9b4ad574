//! The tags of a device whose cloud is played by the test.

#![expect(
    clippy::unwrap_used,
    reason = "also the helpers of a test fail with what they did not find"
)]

use std::sync::{Arc, Mutex};

use futures::FutureExt;
use futures::future::BoxFuture;
use plugin_test_host::{Answer, Cloud, CloudRefusal, EmbeddedHost, Host, RunningHost, build};
use serde_json::{Value, json};

const POLICY: &str = "[plugins.tags]\ngrants = [\"cloud\"]\nrecords = [\"device_tag\"]";

/// A cloud that gives this answer, and records what is queued.
#[derive(Clone)]
struct TagCloud {
    rows: Result<Vec<Value>, CloudRefusal>,
    queued: Arc<Mutex<Vec<(String, String)>>>,
}

impl Cloud for TagCloud {
    fn records<'a>(
        &'a self,
        kind: &'a str,
        fields: &'a [String],
    ) -> BoxFuture<'a, Result<Vec<Value>, CloudRefusal>> {
        assert_eq!(
            (kind, fields.join(",")),
            ("device_tag", "id,tag_key,value".into())
        );
        async { self.rows.clone() }.boxed()
    }

    fn queue<'a>(
        &'a self,
        kind: &'a str,
        values: Vec<(String, String)>,
    ) -> BoxFuture<'a, Result<(), CloudRefusal>> {
        assert_eq!(kind, "device_tag");
        self.queued.lock().unwrap().extend(values);
        async { self.rows.clone().map(drop) }.boxed()
    }
}

async fn with(rows: Result<Vec<Value>, CloudRefusal>) -> (RunningHost, TagCloud) {
    let fake = TagCloud {
        rows,
        queued: Arc::default(),
    };
    let host = Host::new()
        .plugin(build(env!("CARGO_MANIFEST_DIR")))
        .policy(POLICY);
    let host = EmbeddedHost::new(host).cloud(fake.clone());
    (host.start().await, fake)
}

fn failure(answer: &Answer) -> (u16, String) {
    let body = answer.json();
    assert_eq!(body["status"], "failed", "{body}");
    let message = body["message"].as_str().unwrap();
    (answer.status.as_u16(), message.to_owned())
}

#[tokio::test]
async fn the_clouds_tags_are_returned_with_their_key_as_name() {
    let rows = vec![
        json!({"id": 3, "tag_key": "site", "value": "north"}),
        json!({"id": 4, "tag_key": "empty", "value": ""}),
    ];
    let (host, _) = with(Ok(rows)).await;
    let answer = host.get("/v2/device/tags").await;
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.headers["content-type"],
        "application/json; charset=utf-8"
    );
    let tags = json!([
        {"id": 3, "name": "site", "value": "north"},
        {"id": 4, "name": "empty", "value": ""},
    ]);
    assert_eq!(answer.json(), json!({"status": "success", "tags": tags}));
    let (host, _) = with(Ok(Vec::new())).await;
    let none = host.get("/v2/device/tags").await.json();
    assert_eq!(none, json!({"status": "success", "tags": []}));
}

#[tokio::test]
async fn any_internal_failure_of_the_cloud_is_a_500_with_a_message() {
    for (rows, message) in [
        (
            Err(CloudRefusal::Unprovisioned),
            "Attempt to retrieve device tags before provision",
        ),
        (Err(CloudRefusal::Unmanaged), "this device has no cloud"),
        (
            Err(CloudRefusal::Unreachable("no route".into())),
            "no route",
        ),
        (
            Ok(vec![json!({"id": 1, "tag_key": "a"})]),
            "missing field `value`",
        ),
        (
            Ok(vec![json!({"id": "x", "tag_key": "a", "value": "b"})]),
            "invalid type",
        ),
        (Ok(vec![json!(1)]), "invalid type"),
    ] {
        let (host, _) = with(rows).await;
        let (status, error) = failure(&host.get("/v2/device/tags").await);
        assert_eq!(status, 500);
        assert!(error.contains(message), "{error}");
    }
}

async fn patch(host: &RunningHost, body: &str) -> Answer {
    let request = http::Request::patch("/v2/device/tags")
        .header("content-type", "application/json")
        .body(body.to_owned());
    host.send(request).await
}

#[tokio::test]
async fn tags_that_are_set_are_queued() {
    let (host, fake) = with(Ok(Vec::new())).await;
    let answer = patch(&host, r#"{"site":"south","note":""}"#).await;
    assert_eq!(
        (answer.status.as_u16(), answer.json()),
        (202, json!({"status": "success"}))
    );
    let queued = fake.queued.lock().unwrap().clone();
    let expected = [("note", ""), ("site", "south")];
    assert_eq!(
        queued,
        expected.map(|(name, value)| (name.into(), value.into()))
    );

    let (host, _) = with(Err(CloudRefusal::Unmanaged)).await;
    let (status, message) = failure(&patch(&host, r#"{"a":"b"}"#).await);
    assert_eq!(
        (status, message.as_str()),
        (500, "this device has no cloud")
    );
}

#[tokio::test]
async fn without_a_tag_there_is_nothing_to_send() {
    let (host, fake) = with(Ok(Vec::new())).await;
    for body in ["", "{}", "[]"] {
        assert_eq!(patch(&host, body).await.status.as_u16(), 202, "{body}");
    }
    assert_eq!(*fake.queued.lock().unwrap(), []);
}

#[tokio::test]
async fn invalid_tags_are_refused_and_nothing_is_queued() {
    let (host, fake) = with(Ok(Vec::new())).await;
    let long_name = format!("{{\"{}\":\"\"}}", "x".repeat(101));
    let long_value = format!("{{\"a\":\"{}\"}}", "x".repeat(10_001));
    for (body, named) in [
        ("{", "JSON"),
        (r#"{"a b":"c"}"#, "`a b`"),
        (r#"{"":"c"}"#, "name"),
        (r#"{"fine":"c","bad":1}"#, "`bad`"),
        (r#"{"bad":null}"#, "`bad`"),
        (&long_name, "1 to 100"),
        (&long_value, "10000"),
    ] {
        let (status, message) = failure(&patch(&host, body).await);
        assert_eq!(status, 400, "{body}");
        assert!(message.contains(named), "{body}: {message}");
    }
    assert_eq!(*fake.queued.lock().unwrap(), []);
}

#[tokio::test]
async fn the_policy_says_which_records_are_reached() {
    let fake = TagCloud {
        rows: Ok(Vec::new()),
        queued: Arc::default(),
    };
    let host = Host::new()
        .plugin(build(env!("CARGO_MANIFEST_DIR")))
        .policy("[plugins.tags]\ngrants = [\"cloud\"]\nrecords = [\"device\"]");
    let host = EmbeddedHost::new(host).cloud(fake).start().await;
    let (status, message) = failure(&host.get("/v2/device/tags").await);
    assert_eq!(status, 500);
    assert!(message.contains("`device_tag`"), "{message}");
}
