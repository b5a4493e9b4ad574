//! Each operation with each way to make a wrong request: the answer has the status and the form that clients expect of
//! that endpoint, and nothing changes.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tests::{Answer, Supervisor};

use crate::fixture::TwoApps;

/// A status and a form.
type ExpectedAnswer = (u16, Shape);

/// The form of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// `{"status":"failed","message":…}`.
    Failed,
    /// `{"Data":"","Error":…}`.
    DataAndError,
    Text,
    /// JSON or an empty body, as in the description, which every answer is checked against.
    AsDescribed,
}
use Shape::{AsDescribed, DataAndError, Failed, Text};

/// One operation.
struct Row {
    operation: &'static str,
    /// The path of the request.
    path: &'static str,
    /// The answer to a request with the key of another app than that in the path or the body.
    other_key: Option<ExpectedAnswer>,
    /// A body that names app 1, if the operation reads the app from the body.
    body: Option<&'static str>,
    /// The answer to no body, an empty one, one of unknown type or an array; `None` if bodies are ignored.
    no_body: Option<ExpectedAnswer>,
    /// Other paths and bodies: values of wrong types, unknown apps, services and images.
    wrong: &'static [(&'static str, &'static str, ExpectedAnswer)],
}

const ANY_KEY: Option<ExpectedAnswer> = None;
const NO_BODY: Row = Row {
    operation: "",
    path: "",
    other_key: ANY_KEY,
    body: None,
    no_body: None,
    wrong: &[],
};

const fn plain(operation: &'static str, path: &'static str) -> Row {
    Row {
        operation,
        path,
        ..NO_BODY
    }
}

/// The answers of all five `POST /v2/applications/:appId/...` to wrong app numbers.
const SERVICE_ACTION: Row = Row {
    operation: "",
    path: "",
    other_key: Some((401, Failed)),
    body: Some(r#"{"serviceName":"web"}"#),
    no_body: Some((400, Text)),
    wrong: &[
        (
            "/v2/applications/x/VERB",
            r#"{"serviceName":"web"}"#,
            (400, Failed),
        ),
        (
            "/v2/applications/0/VERB",
            r#"{"serviceName":"web"}"#,
            (400, Failed),
        ),
        (
            "/v2/applications/1.5/VERB",
            r#"{"serviceName":"web"}"#,
            (400, Failed),
        ),
        (
            "/v2/applications/99/VERB",
            r#"{"serviceName":"web"}"#,
            (404, Text),
        ),
        (
            "/v2/applications/-1/VERB",
            r#"{"serviceName":"web"}"#,
            (404, Text),
        ),
        (
            "/v2/applications/99999999999999999999/VERB",
            r#"{"serviceName":"web"}"#,
            (400, Failed),
        ),
        (
            "/v2/applications/1/VERB",
            r#"{"serviceName":"nobody"}"#,
            (404, Text),
        ),
        (
            "/v2/applications/1/VERB",
            r#"{"serviceName":"other"}"#,
            (404, Text),
        ),
        ("/v2/applications/1/VERB", r#"{"imageId":99}"#, (404, Text)),
        ("/v2/applications/1/VERB", r#"{"imageId":-1}"#, (404, Text)),
        (
            "/v2/applications/1/VERB",
            r#"{"serviceName":"web","imageId":2}"#,
            (400, Failed),
        ),
        (
            "/v2/applications/1/VERB",
            r#"{"serviceName":"web","imageId":99}"#,
            (404, Text),
        ),
        // Values of wrong types count as absent.
        (
            "/v2/applications/1/VERB",
            r#"{"serviceName":5}"#,
            (400, Text),
        ),
        (
            "/v2/applications/1/VERB",
            r#"{"serviceName":""}"#,
            (400, Text),
        ),
        (
            "/v2/applications/1/VERB",
            r#"{"serviceName":["web"]}"#,
            (400, Text),
        ),
        ("/v2/applications/1/VERB", r#"{"imageId":"x"}"#, (400, Text)),
        ("/v2/applications/1/VERB", r#"{"imageId":1.5}"#, (400, Text)),
        (
            "/v2/applications/1/VERB",
            r#"{"imageId":null,"serviceName":null}"#,
            (400, Text),
        ),
        // An invalid `force` counts as absent: the lock prevents the action.
        (
            "/v2/applications/1/VERB",
            r#"{"serviceName":"web","force":"yes"}"#,
            (423, Failed),
        ),
        (
            "/v2/applications/1/VERB",
            r#"{"serviceName":"web","force":2}"#,
            (423, Failed),
        ),
        (
            "/v2/applications/%31/VERB",
            r#"{"imageId":"1.0","force":{}}"#,
            (423, Failed),
        ),
    ],
};

const APP_ACTION: Row = Row {
    operation: "",
    path: "",
    other_key: Some((401, Failed)),
    body: None,
    // The lock prevents the action.
    no_body: Some((423, Failed)),
    wrong: &[
        ("/v2/applications/x/VERB", "{}", (400, Failed)),
        ("/v2/applications/0/VERB", "{}", (400, Failed)),
        ("/v2/applications/99/VERB", "{}", (503, Failed)),
        ("/v2/applications/-1/VERB", "{}", (503, Failed)),
        (
            "/v2/applications/1/VERB",
            r#"{"force":"yes"}"#,
            (423, Failed),
        ),
        ("/v2/applications/1/VERB", r#"{"force":[]}"#, (423, Failed)),
    ],
};

const APP_IN_BODY: Row = Row {
    operation: "",
    path: "",
    other_key: Some((401, Failed)),
    body: Some(r#"{"appId":1}"#),
    no_body: Some((400, Text)),
    wrong: &[
        ("", r#"{"appId":"5a"}"#, (400, Text)),
        ("", r#"{"appId":"0x5"}"#, (400, Text)),
        ("", r#"{"appId":1.5}"#, (400, Text)),
        ("", r#"{"appId":true}"#, (400, Text)),
        ("", r#"{"appId":null}"#, (400, Text)),
        ("", r#"{"appId":""}"#, (400, Text)),
        ("", r#"{"appId":[1]}"#, (400, Text)),
        ("", r#"{"appId":0}"#, (400, Text)),
        ("", r#"{"appId":99}"#, (503, Failed)),
        ("", r#"{"appId":-1}"#, (503, Failed)),
        ("", r#"{"appId":1}"#, (423, Failed)),
        ("", r#"{"appId":"1","force":"no"}"#, (423, Failed)),
    ],
};

const ONLY_CONTAINER: Row = Row {
    operation: "",
    path: "",
    other_key: Some((401, Text)),
    body: None,
    // The device has several.
    no_body: Some((400, Text)),
    wrong: &[
        ("/v1/apps/x/VERB", "{}", (400, Text)),
        ("/v1/apps/99/VERB", "{}", (400, Text)),
        ("/v1/apps/1/VERB", r#"{"force":{}}"#, (400, Text)),
    ],
};

const POWER: Row = Row {
    operation: "",
    path: "",
    other_key: ANY_KEY,
    body: None,
    no_body: Some((423, DataAndError)),
    wrong: &[
        ("", r#"{"force":"yes"}"#, (423, DataAndError)),
        ("", r#"{"force":2}"#, (423, DataAndError)),
        ("", r#"{"force":null}"#, (423, DataAndError)),
        ("", r#"{"force":{}}"#, (423, DataAndError)),
    ],
};

/// Every operation except those in [`APART`], which have their own tests below: a request to them that is not refused
/// changes what the others need.
const ROWS: &[Row] = &[
    plain("GET /ping", "/ping"),
    plain("GET /v1/healthy", "/v1/healthy"),
    plain("POST /v1/blink", "/v1/blink"),
    Row {
        no_body: Some((204, AsDescribed)),
        wrong: &[
            ("", r#"{"force":"yes"}"#, (204, AsDescribed)),
            ("", r#"{"force":{},"cancel":[]}"#, (204, AsDescribed)),
        ],
        ..plain("POST /v1/update", "/v1/update")
    },
    Row {
        operation: "POST /v1/reboot",
        path: "/v1/reboot",
        ..POWER
    },
    Row {
        operation: "POST /v1/shutdown",
        path: "/v1/shutdown",
        ..POWER
    },
    Row {
        operation: "POST /v1/purge",
        path: "/v1/purge",
        ..APP_IN_BODY
    },
    Row {
        operation: "POST /v1/restart",
        path: "/v1/restart",
        ..APP_IN_BODY
    },
    plain("GET /v1/device", "/v1/device"),
    Row {
        other_key: Some((401, Failed)),
        wrong: &[
            ("/v1/apps/x", "", (400, Text)),
            ("/v1/apps/1.5", "", (400, Text)),
            ("/v1/apps/99", "", (400, Text)),
            ("/v1/apps/1", "", (400, Text)),
        ],
        ..plain("GET /v1/apps/{appId}", "/v1/apps/1")
    },
    Row {
        operation: "POST /v1/apps/{appId}/stop",
        path: "/v1/apps/1/stop",
        ..ONLY_CONTAINER
    },
    Row {
        operation: "POST /v1/apps/{appId}/start",
        path: "/v1/apps/1/start",
        ..ONLY_CONTAINER
    },
    plain("GET /v2/applications/state", "/v2/applications/state"),
    Row {
        other_key: Some((409, Failed)),
        wrong: &[
            ("/v2/applications/x/state", "", (400, Failed)),
            ("/v2/applications/0/state", "", (400, Failed)),
            ("/v2/applications/%20/state", "", (400, Failed)),
            ("/v2/applications/99/state", "", (409, Failed)),
            ("/v2/applications/-1/state", "", (409, Failed)),
            ("/v2/applications/%31/state", "", (200, AsDescribed)),
            ("/v2/applications/1.0/state?x=1&x=2", "", (200, AsDescribed)),
        ],
        ..plain(
            "GET /v2/applications/{appId}/state",
            "/v2/applications/1/state",
        )
    },
    plain("GET /v2/state/status", "/v2/state/status"),
    Row {
        operation: "POST /v2/applications/{appId}/restart-service",
        path: "/v2/applications/1/restart-service",
        ..SERVICE_ACTION
    },
    Row {
        operation: "POST /v2/applications/{appId}/stop-service",
        path: "/v2/applications/1/stop-service",
        ..SERVICE_ACTION
    },
    Row {
        operation: "POST /v2/applications/{appId}/start-service",
        path: "/v2/applications/1/start-service",
        ..SERVICE_ACTION
    },
    Row {
        operation: "POST /v2/applications/{appId}/restart",
        path: "/v2/applications/1/restart",
        ..APP_ACTION
    },
    Row {
        operation: "POST /v2/applications/{appId}/purge",
        path: "/v2/applications/1/purge",
        ..APP_ACTION
    },
    plain("GET /v2/version", "/v2/version"),
    Row {
        wrong: &[
            ("/v2/containerId?service=nobody", "", (503, Failed)),
            (
                "/v2/containerId?serviceName=nobody&service=web",
                "",
                (503, Failed),
            ),
            (
                "/v2/containerId?service=web&service=nobody",
                "",
                (503, Failed),
            ),
            ("/v2/containerId?service=%77eb", "", (200, AsDescribed)),
            ("/v2/containerId?service=%ff", "", (503, Failed)),
            ("/v2/containerId?service=", "", (503, Failed)),
        ],
        ..plain("GET /v2/containerId", "/v2/containerId")
    },
    plain("GET /v2/local/target-state", "/v2/local/target-state"),
    plain("GET /v2/local/device-info", "/v2/local/device-info"),
    plain("GET /v2/device/name", "/v2/device/name"),
    plain("GET /v2/device/tags", "/v2/device/tags"),
    Row {
        no_body: Some((202, AsDescribed)),
        wrong: &[
            ("", r#"{"a":1}"#, (400, Failed)),
            ("", r#"{"a":null}"#, (400, Failed)),
            ("", r#"{"a b":"c"}"#, (400, Failed)),
            ("", r#"{"":"c"}"#, (400, Failed)),
        ],
        ..plain("PATCH /v2/device/tags", "/v2/device/tags")
    },
    plain("GET /v2/device/vpn", "/v2/device/vpn"),
    plain("GET /v2/cleanup-volumes", "/v2/cleanup-volumes"),
    Row {
        wrong: &[
            ("", r#"{"all":[]}"#, (400, Failed)),
            ("", r#"{"follow":{}}"#, (400, Failed)),
            ("", r#"{"count":"many"}"#, (400, Failed)),
            ("", r#"{"count":1.5}"#, (400, Failed)),
            ("", r#"{"unit":5}"#, (400, Failed)),
            ("", r#"{"unit":"--file=/etc/shadow"}"#, (400, Failed)),
            ("", r#"{"containerId":["x"]}"#, (400, Failed)),
            ("", r#"{"format":"-o"}"#, (400, Failed)),
            ("", r#"{"since":0.5}"#, (400, Failed)),
            ("", r#"{"until":true}"#, (400, Failed)),
        ],
        ..plain("POST /v2/journal-logs", "/v2/journal-logs")
    },
    plain("GET /v1/device/host-config", "/v1/device/host-config"),
    Row {
        no_body: Some((400, Text)),
        wrong: &[
            ("", r#"{"network":5}"#, (400, Text)),
            ("", r#"{"network":{"hostname":5}}"#, (400, Text)),
            ("", r#"{"network":{"hostname":"a b"}}"#, (400, Text)),
            ("", r#"{"network":{"hostname":["x"]}}"#, (400, Text)),
            ("", r#"{"network":{"proxy":"x"}}"#, (400, Text)),
            ("", r#"{"network":{"proxy":{"type":"ftp"}}}"#, (400, Text)),
            ("", r#"{"network":{"proxy":{"port":0}}}"#, (400, Text)),
            ("", r#"{"network":{"proxy":{"port":"65536"}}}"#, (400, Text)),
            (
                "",
                r#"{"network":{"proxy":{"noProxy":"10.0.0.1"}}}"#,
                (400, Text),
            ),
            ("", r#"{"network":{"dns":"8.8.8.8"}}"#, (400, Text)),
            ("", r#"{"network":{"hostname":"new-name"}}"#, (423, Text)),
            (
                "",
                r#"{"network":{"hostname":"new-name","force":"yes"}}"#,
                (423, Text),
            ),
        ],
        ..plain("PATCH /v1/device/host-config", "/v1/device/host-config")
    },
    plain("GET /v3/locks", "/v3/locks"),
    Row {
        other_key: Some((401, Failed)),
        body: Some(r#"{"reason":"busy","ttl":60}"#),
        no_body: Some((400, Failed)),
        wrong: &[
            ("/v3/locks/x/web", GOOD_LOCK, (400, Failed)),
            ("/v3/locks/99/web", GOOD_LOCK, (404, Failed)),
            ("/v3/locks/1/nobody", GOOD_LOCK, (404, Failed)),
            ("/v3/locks/1/..%2Fweb", GOOD_LOCK, (404, Failed)),
            // Its user has locked it with a file.
            ("/v3/locks/1/web", GOOD_LOCK, (409, Failed)),
            ("/v3/locks/1/worker", r#"{"reason":"busy"}"#, (400, Failed)),
            ("/v3/locks/1/worker", r#"{"ttl":60}"#, (400, Failed)),
            (
                "/v3/locks/1/worker",
                r#"{"reason":"","ttl":60}"#,
                (400, Failed),
            ),
            (
                "/v3/locks/1/worker",
                r#"{"reason":5,"ttl":60}"#,
                (400, Failed),
            ),
            (
                "/v3/locks/1/worker",
                r#"{"reason":"a\nb","ttl":60}"#,
                (400, Failed),
            ),
            (
                "/v3/locks/1/worker",
                r#"{"reason":"busy","ttl":0}"#,
                (400, Failed),
            ),
            (
                "/v3/locks/1/worker",
                r#"{"reason":"busy","ttl":1e9}"#,
                (400, Failed),
            ),
            (
                "/v3/locks/1/worker",
                r#"{"reason":"busy","ttl":"soon"}"#,
                (400, Failed),
            ),
            (
                "/v3/locks/1/worker",
                r#"{"reason":"busy","ttl":60,"survivesReboot":"maybe"}"#,
                (400, Failed),
            ),
        ],
        ..plain("PUT /v3/locks/{appId}/{service}", "/v3/locks/1/web")
    },
    Row {
        other_key: Some((401, Failed)),
        wrong: &[
            ("/v3/locks/x/web", "", (400, Failed)),
            ("/v3/locks/99/web", "", (404, Failed)),
            ("/v3/locks/1/nobody", "", (404, Failed)),
            ("/v3/locks/1/worker", "", (404, Failed)),
            ("/v3/locks/1/web", "", (409, Failed)),
        ],
        ..plain("DELETE /v3/locks/{appId}/{service}", "/v3/locks/1/web")
    },
    plain("GET /metrics", "/metrics"),
    plain("GET /v3/plugins", "/v3/plugins"),
    Row {
        other_key: Some((401, Failed)),
        wrong: &[
            ("/v3/plugins/nobody/log", "", (404, Failed)),
            ("/v3/plugins/device-info/log?after=x", "", (400, Failed)),
            ("/v3/plugins/device-info/log?after=-1", "", (400, Failed)),
        ],
        ..plain("GET /v3/plugins/{name}/log", "/v3/plugins/device-info/log")
    },
    // The device is not a developer's.
    Row {
        other_key: Some((401, Failed)),
        wrong: &[
            ("", "", (403, Failed)),
            ("/v3/plugins/..%2f..%2fetc", "", (403, Failed)),
        ],
        ..plain("PUT /v3/plugins/{name}", "/v3/plugins/hello")
    },
    Row {
        other_key: Some((401, Failed)),
        wrong: &[("", "", (403, Failed))],
        ..plain("DELETE /v3/plugins/{name}", "/v3/plugins/hello")
    },
    plain("GET /v3/plan", "/v3/plan"),
    plain("GET /v3/openapi.json", "/v3/openapi.json"),
];

/// Operations with their own test below.
const APART: &[&str] = &[
    "POST /v1/regenerate-api-key",
    "POST /v2/local/target-state",
    "GET /v2/local/logs",
    "GET /v3/events",
];

const GOOD_LOCK: &str = r#"{"reason":"busy","ttl":60}"#;
const JSON: &str = "application/json";
/// Larger than any endpoint accepts.
const OVERSIZED: usize = (10 << 20) + 1;

fn assert_is(answer: &Answer, (status, shape): ExpectedAnswer, request: &str) {
    assert_eq!(answer.status, status, "{request}: {answer:?}");
    let content_type = answer.content_type.as_deref();
    let fits = match shape {
        Failed => answer.failure().is_some_and(|message| !message.is_empty()),
        DataAndError => {
            let body = answer.json();
            body["Data"] == "" && body["Error"].as_str().is_some_and(|why| !why.is_empty())
        }
        Text => content_type == Some("text/plain; charset=utf-8") && !answer.text.is_empty(),
        AsDescribed => true,
    };
    assert!(fits, "{request} is not {shape:?}: {answer:?}");
}

#[tokio::test]
async fn every_operation_is_tried() {
    let device = Supervisor::on_wasm().start().await;
    let description = device.description().await.expect("a description");
    let described: BTreeSet<String> = description
        .operations()
        .map(|(method, path, _)| format!("{method} {path}"))
        .collect();
    let rows = ROWS.iter().map(|row| row.operation);
    let tried = rows.chain(APART.iter().copied());
    assert_eq!(described, tried.map(str::to_owned).collect());
}

#[tokio::test]
async fn a_missing_a_wrong_and_another_apps_key_are_refused_as_the_endpoint_does() {
    let apps = TwoApps::start().await;
    let before = apps.state().await;
    let unauthorized = (401, Text);
    let apart = [
        plain("POST /v2/local/target-state", "/v2/local/target-state"),
        plain("GET /v2/local/logs", "/v2/local/logs"),
        plain("GET /v3/events", "/v3/events"),
        plain("POST /v1/regenerate-api-key", "/v1/regenerate-api-key"),
    ];
    let open = ["/ping", "/v1/healthy"];
    let rows = ROWS.iter().chain(&apart);
    for row in rows.filter(|row| !open.contains(&row.path)) {
        let (method, _) = row.operation.split_once(' ').unwrap();
        let body = || row.body.map(|body| (JSON, body.as_bytes().to_vec()));
        let repeated = format!(
            "{}?apikey={key}&apikey={key}",
            row.path,
            key = apps.other_key
        );
        for (path, key) in [
            (row.path, None),
            (row.path, Some("wrong")),
            (repeated.as_str(), None),
        ] {
            // The key is checked before the body.
            for body in [body(), Some((JSON, b"{".to_vec()))] {
                let answer = apps.send(method, path, key, body).await;
                assert_is(
                    &answer,
                    unauthorized,
                    &format!("{method} {path} with {key:?}"),
                );
                assert_eq!(answer.text, "Unauthorized");
            }
        }
        if let Some(expected) = row.other_key {
            let key = Some(apps.other_key.as_str());
            let answer = apps.send(method, row.path, key, body()).await;
            assert_is(
                &answer,
                expected,
                &format!("{} of another app", row.operation),
            );
        }
    }
    assert_eq!(apps.state().await, before);
}

#[tokio::test]
async fn bodies_and_values_that_are_wrong_are_refused_as_the_endpoint_does() {
    let apps = TwoApps::start().await;
    let before = apps.state().await;
    let key = Some(apps.device.key());
    for row in ROWS {
        let (method, _) = row.operation.split_once(' ').unwrap();
        let takes_a_body = row.no_body.is_some() || row.operation.ends_with("journal-logs");
        if takes_a_body {
            for body in ["{", "null", "{}x", "\"text\"", "{\"a\":\u{1}}"] {
                let body = Some((JSON, body.as_bytes().to_vec()));
                let answer = apps.send(method, row.path, key, body.clone()).await;
                assert_is(
                    &answer,
                    (400, Failed),
                    &format!("{} {body:?}", row.operation),
                );
            }
            let oversized = Some((JSON, vec![b' '; OVERSIZED]));
            let answer = apps.send(method, row.path, key, oversized).await;
            assert_is(
                &answer,
                (413, Failed),
                &format!("{} oversized", row.operation),
            );
        } else if method != "GET" {
            let body = Some((JSON, b"{".to_vec()));
            let answer = apps.send(method, row.path, key, body).await;
            assert_ne!(
                answer.status, 400,
                "{} ignores its body: {answer:?}",
                row.operation
            );
        }
        if let Some(expected) = row.no_body {
            for (body, what) in [
                (None, "no body"),
                (Some((JSON, Vec::new())), "an empty body"),
                (Some((JSON, b"{}".to_vec())), "no field"),
                (Some((JSON, b"[1]".to_vec())), "an array"),
                (Some(("text/yaml", b"{".to_vec())), "an unknown type"),
                (Some(("", b"{".to_vec())), "an empty type"),
            ] {
                let answer = apps.send(method, row.path, key, body).await;
                assert_is(&answer, expected, &format!("{} with {what}", row.operation));
            }
        }
        for (path, body, expected) in row.wrong {
            let (_, verb) = row.path.rsplit_once('/').unwrap();
            let path = match *path {
                "" => row.path.to_owned(),
                path => path.replace("VERB", verb),
            };
            let sent = (!body.is_empty()).then(|| (JSON, body.as_bytes().to_vec()));
            let answer = apps.send(method, &path, key, sent).await;
            assert_is(&answer, *expected, &format!("{method} {path} {body}"));
        }
    }
    assert_eq!(apps.state().await, before);
}

#[tokio::test]
async fn a_target_that_is_wrong_is_refused_whole() {
    let apps = TwoApps::start().await;
    let before = apps.state().await;
    let path = "/v2/local/target-state";
    let key = Some(apps.device.key());
    let service = |service: Value| {
        json!({"local": {"apps": {"1": {
            "name": "a", "commit": "c", "releaseId": 1, "services": {"1": service}
        }}}})
    };
    for wrong in [
        json!({"local": null}),
        json!({"local": {"apps": 5}}),
        json!({"local": {"apps": {"x": {"name": "a"}}}}),
        json!({"local": {"apps": {"1": null}}}),
        json!({"local": {"name": "a\nb"}}),
        json!({"local": {"config": {"A B": "x"}}}),
        service(json!({})),
        service(json!({"serviceName": "a", "imageId": 1, "image": "i"})),
        service(
            json!({"serviceName": "a", "imageId": "x", "image": "i", "environment": {}, "labels": {}}),
        ),
        service(
            json!({"serviceName": "../a", "imageId": 1, "image": "i", "environment": {}, "labels": {}}),
        ),
    ] {
        let body = Some((JSON, wrong.to_string().into_bytes()));
        let answer = apps.send("POST", path, key, body).await;
        assert_is(&answer, (400, Failed), &format!("{wrong}"));
    }
    for body in [&b"{"[..], b"null", b"\xff"] {
        let answer = apps
            .send("POST", path, key, Some((JSON, body.to_vec())))
            .await;
        assert_is(&answer, (400, Failed), "malformed");
    }
    let oversized = Some((JSON, vec![b' '; OVERSIZED]));
    assert_is(
        &apps.send("POST", path, key, oversized).await,
        (413, Failed),
        "oversized",
    );
    assert_eq!(apps.state().await, before);
}

#[tokio::test]
async fn a_service_sees_the_target_of_its_own_app_and_no_other() {
    let apps = TwoApps::start().await;
    let path = "/v2/local/target-state";
    let shown = |answer: Answer| -> Vec<String> {
        let shown = answer.json();
        let apps = shown["state"]["local"]["apps"].as_object().unwrap();
        apps.keys().cloned().collect()
    };
    let all = shown(apps.device.get(path).await);
    assert_eq!(all.len(), 2);
    let own = apps.send("GET", path, Some(&apps.other_key), None).await;
    let own = shown(own);
    assert_eq!(own.len(), 1);
    assert!(all.contains(&own[0]));
}

#[tokio::test]
async fn a_key_is_replaced_whatever_the_body_and_only_the_callers() {
    let apps = TwoApps::start().await;
    let path = "/v1/regenerate-api-key";
    let malformed = Some((JSON, b"{".to_vec()));
    let answer = apps
        .send("POST", path, Some(&apps.other_key), malformed)
        .await;
    assert_is(&answer, (200, Text), path);
    let new = Some(answer.text.as_str());
    let old = Some(apps.other_key.as_str());
    assert_eq!(apps.send("GET", "/v1/device", old, None).await.status, 401);
    assert_eq!(apps.send("GET", "/v1/device", new, None).await.status, 200);
    assert_eq!(apps.device.get("/v1/device").await.status, 200);
}

#[tokio::test]
async fn a_type_of_event_that_there_is_not_is_refused() {
    let apps = TwoApps::start().await;
    let key = Some(apps.device.key());
    for types in [
        "nonsense",
        "",
        "service,",
        "service,Service",
        "gap",
        "%2C",
        "service&types=x",
    ] {
        let path = format!("/v3/events?types={types}");
        let answer = apps.send("GET", &path, key, None).await;
        assert_is(&answer, (400, Failed), &path);
    }
}
