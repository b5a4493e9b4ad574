//! Components that answer as `wasi:http` does: `tests/wasi-http-guests`.

use bytes::Bytes;
use device_types::PluginState;
use http::{Request, StatusCode};
use http_body_util::Full;

use crate::fixture::{Fixture, Setup, component, failure, setup, text, with_section};

/// Returns a manifest with `more` in it.
fn manifest(more: &str) -> String {
    format!(
        "name = \"w\"\nversion = \"1.0.0\"\ninterface = \"1.4.0\"\n{more}\n\
         [[routes]]\nmethod = \"GET\"\npath = \"/v3/w\"\n\
         [[routes]]\nmethod = \"GET\"\npath = \"/v3/w/:what\"\n\
         [[routes]]\nmethod = \"POST\"\npath = \"/v3/w/:what\"\n\
         [[capabilities]]\nname = \"http\"\nreason = \"r\"\n"
    )
}

fn file(more: &str) -> Vec<u8> {
    let component = component("wasi_http_guests");
    with_section(&component, "platform:manifest", manifest(more).as_bytes())
}

/// Creates a device with the component, which may send requests, and with `more` in its manifest.
fn device(more: &str) -> Setup {
    setup()
        .file("w.wasm", &file(more))
        .policy("[plugins.w]\ngrants = [\"http\"]\nhttp = [\"api.acme.example\"]\n")
}

const BASE: &str = "base_path = \"/v3/w\"";

async fn started() -> Fixture {
    device(BASE).start().await
}

#[tokio::test]
async fn a_component_of_wasi_http_gets_the_request_and_no_key() {
    let device = started().await;
    let request = |path: &str| {
        Request::builder()
            .uri(path)
            .header("X-One", "1")
            .header("host", "device.example:48484")
            .header("authorization", "Bearer secret")
            .body(Full::<Bytes>::default())
            .unwrap()
    };
    let (status, body) = text(
        device
            .call(request("/V3/w/request?x=%20y&apikey=secret"))
            .await,
    )
    .await;
    assert_eq!(status, StatusCode::OK);
    // It does not get the hop-by-hop headers of a request.
    assert_eq!(
        body,
        "Method::Get Some(Scheme::Http) Some(\"device.example:48484\") Some(\"/request?x=%20y\")\nx-one: 1"
    );
    assert_eq!(
        device.get("/v3/w").await,
        (StatusCode::OK, "the root".to_owned())
    );
    assert_eq!(
        device.get("/v3/w/").await,
        (StatusCode::OK, "the root".to_owned())
    );
    assert_eq!(
        device.get("/v3/w/nowhere").await,
        (StatusCode::NOT_FOUND, "no such path".to_owned())
    );
    assert_eq!(device.report("w").failures, 0);
}

#[tokio::test]
async fn without_a_base_path_it_gets_the_path_as_it_came() {
    let device = device("").start().await;
    assert_eq!(
        device.get("/v3/w/request").await,
        (StatusCode::NOT_FOUND, "no such path".to_owned())
    );
}

#[tokio::test]
async fn bodies_of_any_length_pass_through_it() {
    let device = started().await;
    let long: String = "0123456789".repeat(90_000);
    assert_eq!(
        device.post("/v3/w/echo", long.clone()).await,
        (StatusCode::OK, long)
    );
    assert_eq!(
        device.post("/v3/w/echo", "").await,
        (StatusCode::OK, String::new())
    );
    let (status, body) = device.get("/v3/w/long").await;
    assert_eq!((status, body.len()), (StatusCode::OK, 3 << 20));
    let over = "x".repeat((1 << 20) + 1);
    let (status, body) = device.post("/v3/w/echo", over).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{body}");
}

#[tokio::test]
async fn a_short_answer_comes_with_its_length() {
    let device = started().await;
    // On a busy machine, the component may have used up its time slice before it returns. By then the answer has begun,
    // and its length is unknown.
    tests::until("an answer with its length", || async {
        let request = Request::get("/v3/w/created").body(Full::<Bytes>::default());
        let response = device.call(request.unwrap()).await;
        assert_eq!(response.status(), StatusCode::CREATED);
        assert_eq!(response.headers()["location"], "/v3/5");
        let length = http_body::Body::size_hint(response.body()).exact();
        assert_eq!(text(response).await.1, "five");
        match length {
            Some(4) => Ok(()),
            other => Err(other),
        }
    })
    .await;
}

/// Forbidden answers and failures have the same results as for every plugin.
#[tokio::test]
async fn bad_answers_and_failures_are_those_of_every_plugin() {
    let device = started().await;
    let bad = "plugin `w` gave a bad answer: ";
    for (path, status, expected) in [
        (
            "silent",
            502,
            format!("{bad}it returned without an answer (`response-outparam.set`)"),
        ),
        (
            "header",
            502,
            format!("{bad}20486 bytes of headers, more than 16384"),
        ),
        (
            "given-up",
            502,
            format!(
                "{bad}it did not finish its body, or the body has another length than it announced"
            ),
        ),
        (
            "short",
            502,
            format!(
                "{bad}it did not finish its body, or the body has another length than it announced"
            ),
        ),
        ("error", 500, "out of paper".to_owned()),
        (
            "panic",
            500,
            "plugin `w` failed: wasm trap: wasm `unreachable` instruction executed".to_owned(),
        ),
    ] {
        let (answered, body) = device.get(&format!("/v3/w/{path}")).await;
        // On a busy machine, the component may have used up its time slice before it fails. By then the answer has
        // begun, and ends early instead.
        if answered == StatusCode::OK && ["given-up", "short"].contains(&path) {
            assert!(body.ends_with("(broken)"), "{path}: {body}");
            continue;
        }
        assert_eq!(
            (answered.as_u16(), body),
            (status, failure(&expected)),
            "{path}"
        );
    }
    let (status, body) = device.get("/v3/w/timeout").await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(body.contains("HttpResponseTimeout"), "{body}");
    // An error that it answers does not count as its failure.
    assert_eq!(device.report("w").failures, 5);
}

#[tokio::test]
async fn bytes_sent_before_a_failure_arrive() {
    let device = device(&format!("{BASE}\nlimits = {{ cpu_ms = 200 }}"))
        .start()
        .await;
    for path in ["panic-later", "spin-later"] {
        let (status, body) = device.get(&format!("/v3/w/{path}")).await;
        let whole = (status.as_u16(), body);
        // Either the answer was already on its way, or the failure is reported to the caller
        // instead.
        let broken = (200, "so far(broken)".to_owned());
        let failed = [500, 504].contains(&whole.0);
        assert!(whole == broken || failed, "{path}: {whole:?}");
    }
    assert_eq!(device.report("w").failures, 2);
}

/// Everything that the host holds for it is limited: it is not in the memory that its limits count.
#[tokio::test]
async fn the_hosts_memory_for_a_plugin_is_bounded() {
    let device = started().await;
    assert_eq!(
        device.get("/v3/w/texts").await.1,
        "method true false, path true false, authority true false"
    );
    for (path, expected) in [
        ("headers", "total size of fields exceeds limit"),
        ("hoard", "resource table has no free keys"),
    ] {
        let (status, body) = device.get(&format!("/v3/w/{path}")).await;
        assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR, "{body}");
        assert!(body.contains(expected), "{body}");
    }
}

#[tokio::test]
async fn interfaces_of_the_supervisor_that_answer_at_once_are_there_for_it() {
    let device = device(BASE).config("[w]\nvolts = 5\n").start().await;
    assert_eq!(
        device.get("/v3/w/config").await,
        (StatusCode::OK, "{\"volts\":5}".to_owned())
    );
}

#[tokio::test]
async fn it_sends_no_request_that_the_policy_does_not_name() {
    let device = started().await;
    for url in [
        "http://127.0.0.1:48484/v1/device",
        "http://api.acme.example/x",
    ] {
        let (_, body) = device.get(&format!("/v3/w/fetch?{url}")).await;
        assert_eq!(body, "ErrorCode::HttpRequestDenied", "{url}");
    }
}

#[tokio::test]
async fn it_is_not_loaded_where_the_grant_for_requests_is_missing() {
    let device = setup().file("w.wasm", &file(BASE)).policy("").start().await;
    let report = device.report("w");
    assert_eq!(report.state, PluginState::Refused);
    let refused = report.refused.unwrap_or_default();
    assert!(refused.contains("`http`"), "{refused}");
}

/// Otherwise it would be called, and each call would fail.
#[tokio::test]
async fn a_handler_of_other_resources_is_refused_when_it_is_loaded() {
    let component = |request: &str, place: &str| {
        let text = format!(
            "(component
                (import \"wasi:http/types@0.2.0\" (instance $types
                    (export \"incoming-request\" (type (sub resource)))
                    (export \"response-outparam\" (type (sub resource)))
                    (export \"fields\" (type (sub resource)))))
                (type $own (resource (rep i32)))
                (export $own-type \"own\" (type $own))
                (alias export $types \"incoming-request\" (type $request))
                (alias export $types \"response-outparam\" (type $place))
                (alias export $types \"fields\" (type $fields))
                (core module $m (func (export \"f\") (param i32 i32)))
                (core instance $i (instantiate $m))
                (func $f (param \"request\" (own {request})) (param \"response-out\" (own {place}))
                    (canon lift (core func $i \"f\")))
                (instance $handler (export \"handle\" (func $f)))
                (export \"wasi:http/incoming-handler@0.2.0\" (instance $handler)))"
        );
        wat::parse_str(text).unwrap()
    };
    let cases = [
        ("right", "$request", "$place"),
        ("swapped", "$place", "$request"),
        ("fields", "$fields", "$fields"),
        ("own", "$own-type", "$own-type"),
    ];
    let mut policy = String::new();
    let mut setup = setup();
    for (name, request, place) in cases {
        let manifest = format!(
            "name = \"{name}\"\nversion = \"1.0.0\"\ninterface = \"1.4.0\"\n\
             [[routes]]\nmethod = \"GET\"\npath = \"/v3/{name}\"\n"
        );
        let file = with_section(
            &component(request, place),
            "platform:manifest",
            manifest.as_bytes(),
        );
        setup = setup.file(&format!("{name}.wasm"), &file);
        policy += &format!("[plugins.{name}]\n");
    }
    let device = setup.policy(&policy).start().await;
    for (name, ..) in cases {
        let refused = device.report(name).refused;
        let expected = (name != "right").then(|| {
            "its export `wasi:http/incoming-handler@0.2.0` has another type than that of wasi:http 0.2: `handle`"
                .to_owned()
        });
        assert_eq!(refused, expected, "{name}");
    }
    let (status, body) = device.get("/v3/right").await;
    let expected =
        "plugin `right` gave a bad answer: it returned without an answer (`response-outparam.set`)";
    assert_eq!((status, body), (StatusCode::BAD_GATEWAY, failure(expected)));
}

#[tokio::test]
async fn a_manifest_whose_routes_are_not_below_its_base_path_is_refused() {
    for (base, expected) in [
        (
            "/v3/other",
            "the route `GET /v3/w` does not begin with `base_path`, which is `/v3/other`",
        ),
        (
            "/v3/:w",
            "`base_path` is `/v3/:w`, but must not contain a `:name`",
        ),
        ("v3", "invalid route `v3`"),
    ] {
        let more = format!("base_path = \"{base}\"");
        let device = setup().file("w.wasm", &file(&more)).start().await;
        let refused = device.plugins.report()[0]
            .refused
            .clone()
            .unwrap_or_default();
        assert!(refused.contains(expected), "{refused}");
    }
}
