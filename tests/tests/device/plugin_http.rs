//! Plugins that send requests to other hosts: the example `weather` and a component of `wasi:http`, and a server on
//! this machine.

mod tls;

use std::fs;

use axum::Router;
use axum::http::HeaderMap;
use axum::routing::{get, post};
use tests::{Builder, Supervisor, guest, until};
use tokio::net::TcpListener;

/// A device with the component of `wasi:http` that does what its path names; the policy names this server.
async fn device_with_wasi_http(server: &str) -> (Supervisor, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut file = fs::read(guest("wasi_http_guests")).unwrap();
    let manifest = "name = \"w\"\nversion = \"1.0.0\"\ninterface = \"1.4.0\"\nbase_path = \"/v3/w\"\n\
                    [[capabilities]]\nname = \"http\"\nreason = \"r\"\n\
                    [[routes]]\nmethod = \"GET\"\npath = \"/v3/w/:what\"\n";
    plugin_manifest::append_section(&mut file, plugin_manifest::SECTION, manifest.as_bytes());
    fs::create_dir(path("plugins")).unwrap();
    fs::write(path("plugins/w.wasm"), file).unwrap();
    let policy = format!(
        "[plugins.w]\nroutes = [\"/v3/w/:what\"]\ngrants = [\"http\"]\nhttp = [\"{server}\"]\n"
    );
    fs::write(path("policy.toml"), policy).unwrap();
    let device = Supervisor::on_wasm()
        .plugins_of(folder.path())
        .start()
        .await;
    (device, folder)
}

/// A device with the plugin, whose server is at `server` and whose policy names these hosts.
async fn device(server: &str, hosts: &str) -> (Supervisor, tempfile::TempDir) {
    device_of(Supervisor::on_wasm(), server, hosts).await
}

async fn device_of(builder: Builder, server: &str, hosts: &str) -> (Supervisor, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("plugins")).unwrap();
    fs::copy(guest("weather"), path("plugins/weather.wasm")).unwrap();
    let policy = format!(
        "[plugins.weather]\nroutes = [\"/v3/weather/:place\"]\ngrants = [\"http\"]\nhttp = [{hosts}]\n"
    );
    fs::write(path("policy.toml"), policy).unwrap();
    let device = builder
        .plugins_of(folder.path())
        .configuration(format!("[plugins.weather]\nserver = \"{server}\"\n"))
        .start()
        .await;
    (device, folder)
}

/// Starts a server with one normal answer, one redirect elsewhere, and one that is too long; returns its port.
async fn server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let elsewhere = format!("http://127.0.0.1:{port}/now/berlin");
    let router = Router::new()
        .route("/now/berlin", get(|| async { "{\"celsius\":21.5}" }))
        .route("/now/long", get(|| async { "x".repeat(2 << 20) }))
        .route(
            "/now/moved",
            get(|| async move { axum::response::Redirect::temporary(&elsewhere) }),
        )
        .route(
            "/echo",
            post(|headers: HeaderMap, body: String| async move {
                format!("{:?} {body}", headers.get("content-length"))
            }),
        );
    tokio::spawn(async move { axum::serve(listener, router).await });
    port
}

#[tokio::test]
async fn a_plugin_asks_a_host_that_the_policy_names() {
    let port = server().await;
    let server = format!("http://127.0.0.1:{port}");
    let (device, _folder) = device(&server, &format!("\"{server}\"")).await;
    let answer = device.get("/v3/weather/berlin").await;
    assert_eq!(
        (answer.status, answer.text.as_str()),
        (200, "{\"celsius\":21.5}")
    );
    // A redirect is returned as an answer: the other host does not decide where the plugin connects.
    let moved = device.get("/v3/weather/moved").await;
    assert_eq!(moved.status, 502);
    let expected = "the other host answered 307";
    assert!(moved.text.contains(expected), "{}", moved.text);
    let long = device.get("/v3/weather/long").await;
    assert_eq!(long.status, 502);
    let expected = "the answer has more than 1024 KiB";
    assert!(long.text.contains(expected), "{}", long.text);
}

#[tokio::test]
async fn a_proxy_of_the_environment_gets_no_requests_of_plugins() {
    let port = server().await;
    let server = format!("http://127.0.0.1:{port}");
    // Nobody listens there.
    let builder = Supervisor::on_wasm()
        .environment("http_proxy", "http://127.0.0.1:9")
        .environment("HTTP_PROXY", "http://127.0.0.1:9");
    let (device, _folder) = device_of(builder, &server, &format!("\"{server}\"")).await;
    let answer = device.get("/v3/weather/berlin").await;
    assert_eq!(
        (answer.status, answer.text.as_str()),
        (200, "{\"celsius\":21.5}")
    );
}

#[tokio::test]
async fn a_plugin_reaches_no_other_port_of_a_host() {
    let port = server().await;
    let other = server().await;
    let server = format!("http://127.0.0.1:{port}");
    let (device, _folder) = device(&server, &format!("\"http://127.0.0.1:{other}\"")).await;
    let answer = device.get("/v3/weather/berlin").await;
    assert_eq!(answer.status, 500);
    let expected = format!("the policy does not name `http://127.0.0.1:{port}`");
    assert!(answer.text.contains(&expected), "{}", answer.text);
}

#[tokio::test]
async fn a_component_of_wasi_http_asks_a_host_that_the_policy_names() {
    let port = server().await;
    let server = format!("http://127.0.0.1:{port}");
    let (device, _folder) = device_with_wasi_http(&server).await;
    for (path, expected) in [
        (
            format!("fetch?{server}/now/berlin"),
            "200 {\"celsius\":21.5}",
        ),
        (format!("post?{server}/echo"), "200 Some(\"8\") the body"),
        (format!("fetch?{server}/now/moved"), "307 "),
        (
            format!("fetch?{server}/now/long"),
            "ErrorCode::HttpResponseBodySize(None)",
        ),
        (
            "fetch?http://127.0.0.1:1/x".to_owned(),
            "ErrorCode::HttpRequestDenied",
        ),
    ] {
        let answer = device.get(&format!("/v3/w/{path}")).await;
        assert_eq!(
            (answer.status, answer.text.as_str()),
            (200, expected),
            "{path}"
        );
    }
    // The reason is in the log, since an error code has no room for it.
    until("the refusal to be logged", || async {
        let log = device.log();
        let refused = "the policy does not name `http://127.0.0.1:1`";
        if log.contains(refused) {
            Ok(())
        } else {
            Err(log)
        }
    })
    .await;
}

#[tokio::test]
async fn a_component_sends_four_requests_at_a_time_and_no_more() {
    let port = server().await;
    let server = format!("http://127.0.0.1:{port}");
    let (device, _folder) = device_with_wasi_http(&server).await;
    let answer = device
        .get(&format!("/v3/w/fetch-six?{server}/now/berlin"))
        .await;
    let count = |text: &str| answer.text.lines().filter(|line| *line == text).count();
    let counts = (
        count("200 {\"celsius\":21.5}"),
        count("ErrorCode::ConnectionLimitReached"),
    );
    assert_eq!(counts, (4, 2), "{}", answer.text);
}
