//! Requests to plugins, and their answers.

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use plugins::RouteLookup;

use crate::fixture::{failure, setup, text};

#[tokio::test]
async fn a_plugin_gets_the_request_and_no_key() {
    let device = setup().guest("a", "").start().await;
    let request = Request::builder()
        .method(Method::GET)
        .uri("/v3/a/request/?x=%20y&apikey=secret&z")
        .header("x-one", "1")
        .header("authorization", "Bearer secret")
        .body(Full::<Bytes>::default())
        .unwrap();
    // The last segment is empty: the guest uses the one before the slash.
    let (_, body) = text(device.call(request).await).await;
    assert!(body.contains("nothing called"), "{body}");

    let request = Request::builder()
        .uri("/V3/a/request?x=%20y&apikey=secret&z")
        .header("X-One", "1")
        .header("authorization", "Bearer secret")
        .body(Full::<Bytes>::default())
        .unwrap();
    let (status, body) = text(device.call(request).await).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(
        body,
        "GET /V3/a/request /v3/a/:what [(\"what\", \"request\")] x=%20y&z x-one=1"
    );
}

/// Other spellings of `apikey` are keys to the API as well.
#[tokio::test]
async fn a_plugin_gets_no_key_whose_name_is_percent_encoded() {
    let device = setup().guest("a", "").start().await;
    for query in [
        "api%6Bey=secret&a=b",
        "a=b&%61%70%69%6b%65%79=secret",
        "apikey=secret&a=b&api%6bey=secret",
        "a=b&apikey",
    ] {
        let (status, body) = device.get(&format!("/v3/a/request?{query}")).await;
        assert_eq!(status, StatusCode::OK);
        assert!(!body.contains("secret"), "{query}: {body}");
        assert!(
            body.contains("[(\"what\", \"request\")] a=b "),
            "{query}: {body}"
        );
    }
}

#[tokio::test]
async fn paths_and_methods_find_their_plugin() {
    let device = setup().guest("a", "").start().await;
    let find = |method: Method, path: &str| match device.plugins.find(&method, path) {
        RouteLookup::Route(route) => route.plugin().to_owned(),
        RouteLookup::MethodNotAllowed { methods } => plugin_manifest::allowed_methods(&methods),
        found => format!("{found:?}"),
    };
    assert_eq!(find(Method::GET, "/v3/a/x"), "a");
    assert_eq!(find(Method::HEAD, "/v3/a/x"), "a");
    assert_eq!(find(Method::DELETE, "/v3/a/x"), "GET, HEAD, POST");
    assert_eq!(find(Method::GET, "/v3/b/x"), "None");
}

#[tokio::test]
async fn answers_come_as_the_plugin_gave_them() {
    let device = setup().guest("a", "").start().await;
    assert_eq!(
        device.get("/v3/a/hello").await,
        (StatusCode::OK, "hello".to_owned())
    );
    assert_eq!(
        device.get("/v3/a/empty").await,
        (StatusCode::NO_CONTENT, String::new())
    );
    assert_eq!(
        device.get("/v3/a/error").await,
        (StatusCode::IM_A_TEAPOT, failure("a teapot"))
    );
    assert_eq!(
        device.get("/v3/a/odd-error").await,
        (
            StatusCode::INTERNAL_SERVER_ERROR,
            failure("no error at all")
        )
    );
    assert_eq!(
        device.get("/v3/a/wrong-length").await,
        (StatusCode::OK, "short".to_owned())
    );
    // A plugin's intended error does not count as its failure.
    assert_eq!(device.report("a").failures, 0);
    assert_eq!(device.report("a").calls, 5);

    let head = Request::builder()
        .method(Method::HEAD)
        .uri("/v3/a/hello")
        .body(Full::<Bytes>::default())
        .unwrap();
    let answer = device.call(head).await;
    assert_eq!(answer.headers()["content-length"], "5");
    assert_eq!(text(answer).await, (StatusCode::OK, String::new()));
}

#[tokio::test]
async fn a_bad_answer_is_a_502_that_names_the_plugin() {
    let device = setup().guest("a", "").start().await;
    for (path, what) in [
        ("status-0", "the status 0 is not between 200 and 599"),
        ("status-101", "the status 101 is not between 200 and 599"),
        ("bad-header", "`a b` is not a valid header name"),
        (
            "header-break",
            "the header `a` has a value that HTTP does not allow",
        ),
        (
            "hop-by-hop",
            "plugins may not set the header `transfer-encoding`",
        ),
        ("many-headers", "1000 headers, more than 64"),
        ("huge-header", "1048577 bytes of headers, more than 16384"),
        (
            "huge-body",
            "2097152 bytes, more than its 1048576 (the limit `body_kib`, which may be 16384 at most)",
        ),
    ] {
        let expected = failure(&format!("plugin `a` gave a bad answer: {what}"));
        assert_eq!(
            device.get(&format!("/v3/a/{path}")).await,
            (StatusCode::BAD_GATEWAY, expected)
        );
    }
    let report = device.report("a");
    assert_eq!((report.calls, report.failures), (8, 8));
    assert_eq!(
        report.last_error.unwrap(),
        "plugin `a` gave a bad answer: 2097152 bytes, more than its 1048576 (the limit `body_kib`, which may be 16384 at most)"
    );
}

#[tokio::test]
async fn nothing_is_kept_from_one_call_to_the_next() {
    let device = setup().guest("a", "").start().await;
    let mut seeds = Vec::new();
    for _ in 0..10 {
        seeds.push(device.get("/v3/a/random").await.1);
        assert_eq!(
            device.get("/v3/a/panic").await.0,
            StatusCode::INTERNAL_SERVER_ERROR
        );
        assert_eq!(device.get("/v3/a/hello").await.1, "hello");
    }
    seeds.sort();
    seeds.dedup();
    assert_eq!(seeds.len(), 10, "each instance has its own seed");
}
