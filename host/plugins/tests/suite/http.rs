//! Requests of plugins to other hosts, as the device's client gets them and answers them: those that a component of
//! `wasi:http` sends take the path of `wit/http.wit`.

use std::sync::Arc;

use device_types::PluginState;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use plugins::{
    AddressScope, HttpClient, HttpError, HttpResponse, OutgoingRequest, UnavailableService,
};

use crate::fixture::{Fixture, component, setup, with_section};

const SERVER: &str = "http://api.acme.example";

/// A client that keeps each request and has one answer.
#[derive(Clone)]
struct RecordingClient {
    requests: Arc<Mutex<Vec<OutgoingRequest>>>,
    /// `None` if the other host never answers.
    answer: Option<Result<HttpResponse, HttpError>>,
}

impl RecordingClient {
    fn new(answer: Option<Result<HttpResponse, HttpError>>) -> Self {
        RecordingClient {
            requests: Arc::default(),
            answer,
        }
    }

    /// Returns the requests since the last call.
    fn take(&self) -> Vec<OutgoingRequest> {
        std::mem::take(&mut *self.requests.lock())
    }
}

impl HttpClient for RecordingClient {
    fn send(&self, request: OutgoingRequest) -> BoxFuture<'_, Result<HttpResponse, HttpError>> {
        self.requests.lock().push(request);
        async {
            match self.answer.clone() {
                Some(answer) => answer,
                None => std::future::pending().await,
            }
        }
        .boxed()
    }
}

fn fine() -> Result<HttpResponse, HttpError> {
    Ok(HttpResponse {
        status: 200,
        headers: vec![("x-one".to_owned(), b"1".to_vec())],
        body: b"fine".to_vec(),
    })
}

/// Returns the component, whose manifest asks for these capabilities.
fn plugin(capabilities: &str) -> Vec<u8> {
    let manifest = format!(
        "name = \"w\"\nversion = \"1.0.0\"\ninterface = \"1.4.0\"\nbase_path = \"/v3/w\"\n{capabilities}\n\
         [[routes]]\nmethod = \"GET\"\npath = \"/v3/w/:what\"\n"
    );
    with_section(
        &component("wasi_http_guests"),
        "platform:manifest",
        manifest.as_bytes(),
    )
}

/// Starts a device with the component, whose policy names these hosts.
async fn device(hosts: &str, client: &RecordingClient) -> Fixture {
    let policy = format!("[plugins.w]\ngrants = [\"http\"]\nhttp = [{hosts}]\n");
    setup()
        .file(
            "w.wasm",
            &plugin("[[capabilities]]\nname = \"http\"\nreason = \"r\"\n"),
        )
        .policy(&policy)
        .answers(client.clone(), UnavailableService)
        .in_process()
        .start()
        .await
}

/// Returns the text with which the component answers.
async fn says(device: &Fixture, path: &str) -> String {
    device.get(&format!("/v3/w/{path}")).await.1
}

#[tokio::test]
async fn a_name_may_lead_to_other_machines_alone_and_an_address_anywhere() {
    let client = RecordingClient::new(Some(fine()));
    let hosts = "\"http://api.acme.example\", \"http://192.0.2.7:81\", \"http://localhost:82\"";
    let device = device(hosts, &client).await;
    for (url, reachable) in [
        ("http://api.acme.example/x", AddressScope::OtherMachines),
        ("http://192.0.2.7:81/x", AddressScope::Everything),
        ("http://localhost:82/x", AddressScope::Everything),
    ] {
        assert_eq!(says(&device, &format!("fetch?{url}")).await, "200 fine");
        let requests = client.take();
        let [request] = requests.as_slice() else {
            panic!("{requests:?}");
        };
        assert_eq!(request.reachable, reachable, "{url}");
        assert_eq!(request.longest_answer, 1 << 20);
        assert_eq!(&*request.plugin, "w");
        assert_eq!(request.request.uri(), url);
    }
}

#[tokio::test]
async fn headers_go_both_ways_and_the_device_writes_the_length_itself() {
    let client = RecordingClient::new(Some(fine()));
    let device = device(&format!("\"{SERVER}\""), &client).await;
    let path = format!("post-sized?{SERVER}/x");
    assert_eq!(says(&device, &path).await, "200 fine");
    let request = client.take().remove(0).request;
    assert_eq!(request.method(), "POST");
    assert_eq!(request.body(), b"the body");
    let names: Vec<_> = request.headers().keys().map(|name| name.as_str()).collect();
    assert_eq!(names, ["x-one"]);
    let path = format!("fetch-field?{SERVER}/x");
    assert_eq!(says(&device, &path).await, "1");
}

#[tokio::test]
async fn a_request_that_is_longer_than_one_may_be_does_not_leave_the_component() {
    let client = RecordingClient::new(Some(fine()));
    let device = device(&format!("\"{SERVER}\""), &client).await;
    for (path, expected) in [
        ("fetch-long", "ErrorCode::HttpRequestUriTooLong"),
        (
            "fetch-many-fields",
            "ErrorCode::HttpRequestHeaderSectionSize(None)",
        ),
        ("post-long", "ErrorCode::HttpRequestBodySize(None)"),
    ] {
        let path = format!("{path}?{SERVER}/x");
        assert_eq!(says(&device, &path).await, expected);
    }
    assert_eq!(client.take().len(), 0);
    assert_eq!(device.report("w").failures, 0);
}

#[tokio::test]
async fn an_error_of_the_client_has_the_code_of_wasi_http() {
    let text = || "why".to_owned();
    for (error, expected) in [
        (
            HttpError::NotGranted(text()),
            "ErrorCode::HttpRequestDenied",
        ),
        (
            HttpError::Invalid(text()),
            "ErrorCode::InternalError(Some(\"why\"))",
        ),
        (
            HttpError::Unreachable(text()),
            "ErrorCode::DestinationUnavailable",
        ),
        (
            HttpError::TooLarge(text()),
            "ErrorCode::HttpResponseBodySize(None)",
        ),
    ] {
        let client = RecordingClient::new(Some(Err(error)));
        let device = device(&format!("\"{SERVER}\""), &client).await;
        let path = format!("fetch?{SERVER}/x");
        assert_eq!(says(&device, &path).await, expected);
        // The code has no room for the reason.
        let log = device.plugins.log("w", 0).unwrap();
        let mut lines = log.lines.iter();
        assert!(
            lines.any(|line| line.message.contains("wasi:http: ")),
            "{log:?}"
        );
    }
}

#[tokio::test]
async fn a_component_waits_for_as_long_as_it_says() {
    let client = RecordingClient::new(None);
    let device = device(&format!("\"{SERVER}\""), &client).await;
    let path = format!("fetch-soon?{SERVER}/x");
    assert_eq!(
        says(&device, &path).await,
        "ErrorCode::ConnectionReadTimeout"
    );
    assert_eq!(client.take().len(), 1);
}

#[tokio::test]
async fn four_requests_are_under_way_at_a_time_and_an_answer_counts_for_as_long_as_it_is_held() {
    let client = RecordingClient::new(Some(fine()));
    let device = device(&format!("\"{SERVER}\""), &client).await;
    let answers = says(&device, &format!("fetch-six?{SERVER}/x")).await;
    let count = |text: &str| answers.lines().filter(|line| *line == text).count();
    let counts = (
        count("200 fine"),
        count("ErrorCode::ConnectionLimitReached"),
    );
    assert_eq!(counts, (4, 2), "{answers}");
    assert_eq!(
        says(&device, &format!("fetch-held?{SERVER}/x")).await,
        "ErrorCode::ConnectionLimitReached, then 200 fine"
    );
}

#[tokio::test]
async fn a_component_that_sends_requests_is_not_loaded_if_its_manifest_does_not_say_so() {
    let device = setup()
        .file("w.wasm", &plugin(""))
        .in_process()
        .start()
        .await;
    let report = device.report("w");
    assert_eq!(report.state, PluginState::Refused);
    let refused = report.refused.unwrap_or_default();
    assert!(refused.contains("http"), "{refused}");
}
