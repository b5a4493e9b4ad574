//! On whose behalf a plugin is called (`wit/caller.wit`).

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::Full;
use plugins::CallerScope;

use crate::fixture::{Fixture, setup, text};

fn service(app_id: u64, service: &str) -> CallerScope {
    CallerScope::Service {
        app_id,
        service: service.to_owned(),
    }
}

impl Fixture {
    /// Returns status and body of `GET path` by a caller of this scope.
    async fn get_by(&self, scope: CallerScope, path: &str) -> (StatusCode, String) {
        let request = Request::builder().uri(path).body(Full::<Bytes>::default());
        text(self.call_by(scope, request.unwrap()).await).await
    }
}

#[tokio::test]
async fn a_plugin_receives_the_callers_scope() {
    let device = setup().guest("acme", "").start().await;
    for (scope, expected) in [
        (CallerScope::DeviceKey, "CallerScope::DeviceKey None"),
        (CallerScope::LocalMode, "CallerScope::LocalMode None"),
        (
            service(7, "web"),
            "CallerScope::Service(AppService { app-id: 7, service: \"web\" }) None",
        ),
        // The next call's instance was created before its caller was known.
        (
            service(u64::MAX, "db"),
            "CallerScope::Service(AppService { app-id: 18446744073709551615, service: \"db\" }) None",
        ),
    ] {
        let (status, body) = device.get_by(scope, "/v3/acme/caller").await;
        assert_eq!((status, body.as_str()), (StatusCode::OK, expected));
    }
}

#[tokio::test]
async fn a_provider_receives_the_calling_plugin_and_the_maker_of_its_request() {
    let device = setup()
        .guest("acme", "")
        .guest(
            "provider",
            "provides = [\"proxy-redirector\", \"identify\"]",
        )
        .config("[provider]\nsay = \"identify-names\"\n")
        .start()
        .await;
    let expected =
        "for CallerScope::Service(AppService { app-id: 7, service: \"web\" }) Some(\"acme\")";
    let (status, body) = device.get_by(service(7, "web"), "/v3/acme/proxy").await;
    assert_eq!(status, StatusCode::OK, "{body}");
    let body = body.replace('\\', "");
    assert!(body.contains(expected), "{body}");

    let (status, body) = device
        .get_by(CallerScope::LocalMode, "/v3/acme/identify")
        .await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    let body = body.replace('\\', "");
    assert!(
        body.contains("CallerScope::LocalMode Some(\"acme\")"),
        "{body}"
    );
}
