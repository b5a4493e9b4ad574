//! Random requests: every answer is listed in the description, its body has the form described there, and a refused
//! request has changed nothing.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use tests::Answer;

use crate::fixture::TwoApps;

/// The number of requests for each operation.
const REQUESTS: usize = 24;
/// Endpoints whose answers continue for as long as they are read.
const STREAMS: [&str; 3] = ["/v2/local/logs", "/v2/journal-logs", "/v3/events"];

/// A request to some operation, without method and path.
#[derive(Debug, Clone)]
struct RandomRequest {
    /// The value of the path's parameters.
    segment: String,
    query: String,
    key: Key,
    content_type: Option<&'static str>,
    body: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
enum Key {
    Device,
    OtherApp,
    Wrong,
    None,
}

fn sent() -> impl Strategy<Value = RandomRequest> {
    let segment = prop_oneof![
        4 => Just("1".to_owned()),
        2 => Just("2".to_owned()),
        1 => any::<i64>().prop_map(|number| number.to_string()),
        1 => "[a-z0-9.%:~-]{1,12}".prop_map(|text| text.replace('%', "%25")),
        1 => Just("web".to_owned()),
    ];
    let query = prop_oneof![
        2 => Just(String::new()),
        1 => "[a-zA-Z]{1,8}=[a-z0-9]{0,8}",
        1 => "service=(web|other|nobody|)",
        1 => "(types|serviceName|x)=[a-z,%]{0,6}".prop_map(|text| text.replace('%', "%25")),
    ];
    let key = prop_oneof![
        6 => Just(Key::Device),
        2 => Just(Key::OtherApp),
        1 => Just(Key::Wrong),
        1 => Just(Key::None),
    ];
    let content_type = prop_oneof![
        6 => Just(Some("application/json")),
        1 => Just(Some("application/x-www-form-urlencoded")),
        1 => Just(Some("text/plain")),
        1 => Just(None),
    ];
    let body = prop_oneof![
        6 => object().prop_map(|body| body.to_string().into_bytes()),
        1 => value().prop_map(|body| body.to_string().into_bytes()),
        1 => proptest::collection::vec(any::<u8>(), 0..64),
        1 => Just(Vec::new()),
    ];
    (segment, query, key, content_type, body).prop_map(
        |(segment, query, key, content_type, body)| RandomRequest {
            segment,
            query,
            key,
            content_type,
            body,
        },
    )
}

/// An object with fields that some endpoint knows, of right and of wrong types.
fn object() -> impl Strategy<Value = Value> {
    let name = prop_oneof![
        "(appId|serviceName|imageId|force|cancel|network|local|reason|ttl)",
        "(all|follow|count|unit|containerId|format|since|until)",
        "[a-z ]{0,8}",
    ];
    let network = proptest::collection::btree_map("(hostname|proxy|dns|force|x)", value(), 0..3)
        .prop_map(|fields| json!({ "network": fields }));
    let local = proptest::collection::btree_map("(name|config|apps)", value(), 0..3)
        .prop_map(|fields| json!({ "local": fields }));
    prop_oneof![
        4 => proptest::collection::btree_map(name, value(), 0..4).prop_map(|fields| json!(fields)),
        1 => network,
        1 => local,
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0..5_i64).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z0-9.:/-]{0,12}".prop_map(Value::from),
        Just(json!("web")),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[a-zA-Z]{1,8}", inner, 0..4)
                .prop_map(|fields| json!(fields)),
        ]
    })
}

impl RandomRequest {
    fn path(&self, template: &str) -> String {
        let segments = template.split('/').map(|segment| {
            if segment.starts_with('{') {
                self.segment.as_str()
            } else {
                segment
            }
        });
        let path = segments.collect::<Vec<_>>().join("/");
        if self.query.is_empty() {
            path
        } else {
            format!("{path}?{}", self.query)
        }
    }

    fn request(&self, apps: &TwoApps, method: &str, path: &str) -> reqwest::RequestBuilder {
        let key = match self.key {
            Key::Device => Some(apps.device.key()),
            Key::OtherApp => Some(apps.other_key.as_str()),
            Key::Wrong => Some("0123456789abcdef"),
            Key::None => None,
        };
        let mut request = apps.device.request_without_key(method, path);
        if let Some(key) = key {
            request = request.bearer_auth(key);
        }
        if let Some(content_type) = self.content_type {
            request = request.header("content-type", content_type);
        }
        match method {
            "GET" => request,
            _ => request.body(self.body.clone()),
        }
    }
}

/// Returns the head of an answer whose body may have no end.
async fn head(request: reqwest::RequestBuilder) -> Answer {
    let response = request.send().await.expect("an answer");
    let status = response.status().as_u16();
    let header = response.headers().get("content-type").cloned();
    let text = match status {
        200 => String::new(),
        _ => response.text().await.expect("a body"),
    };
    Answer {
        status,
        content_type: header.map(|value| value.to_str().expect("text").to_owned()),
        allow: None,
        text,
    }
}

#[tokio::test]
async fn every_answer_to_a_random_request_is_described_and_a_refused_one_changes_nothing() {
    let mut apps = TwoApps::start().await;
    apps.device.get("/ping").await;
    let description = apps.device.description().await.expect("a description");
    let operations: Vec<(String, String)> = description
        .operations()
        .map(|(method, path, _)| (method, path.to_owned()))
        .collect();
    // The seed is fixed, so that a failure can be reproduced.
    let mut runner = TestRunner::deterministic();
    for (method, template) in operations {
        for _ in 0..REQUESTS {
            let mut sent = sent().new_tree(&mut runner).expect("a request").current();
            let replaces_a_key = template == "/v1/regenerate-api-key";
            if replaces_a_key && matches!(sent.key, Key::Device) {
                sent.key = Key::OtherApp;
            }
            let path = sent.path(&template);
            let named = format!("{method} {path} {sent:?}");
            let before = apps.state().await;
            let request = sent.request(&apps, &method, &path);
            let answer = if STREAMS.contains(&template.as_str()) {
                let answer = head(request).await;
                let description = apps.device.description().await.expect("a description");
                let checked = description.check(&method, &path, &answer);
                assert_eq!(checked, Ok(()), "{named}");
                answer
            } else {
                apps.device.send(request).await
            };
            if (400..500).contains(&answer.status) {
                assert_eq!(apps.state().await, before, "{named}: {answer:?}");
            }
            let went_down =
                ["/v1/reboot", "/v1/shutdown"].contains(&template.as_str()) && answer.status == 202;
            let changed = format!("{method} {template}") == "POST /v2/local/target-state"
                && answer.status == 200;
            if replaces_a_key && answer.status == 200 {
                apps.other_key = answer.text;
                apps.give_new_keys().await;
            } else if went_down || changed {
                apps = TwoApps::start().await;
            }
        }
    }
    let log = apps.device.log();
    assert!(!log.contains("panicked"), "{log}");
}
