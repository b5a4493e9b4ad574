//! A plugin that asks other hosts: the example `weather`, and a server on this machine.

use std::fs;

use axum::Router;
use axum::routing::get;
use tests::{Supervisor, guest};
use tokio::net::TcpListener;

/// A device with the plugin, whose server is at `server` and whose policy names these hosts.
async fn device(server: &str, hosts: &str) -> (Supervisor, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("plugins")).unwrap();
    fs::copy(guest("weather"), path("plugins/weather.wasm")).unwrap();
    let policy = format!(
        "[plugins.weather]\nroutes = [\"/v3/weather/:place\"]\ngrants = [\"http\"]\nhttp = [{hosts}]\n"
    );
    fs::write(path("policy.toml"), policy).unwrap();
    let device = Supervisor::on_wasm()
        .argument("--plugin-dir")
        .argument(path("plugins").display().to_string())
        .argument("--policy")
        .argument(path("policy.toml").display().to_string())
        .argument("--allow-unpinned")
        .configuration(format!("[plugins.weather]\nserver = \"{server}\"\n"))
        .start()
        .await;
    (device, folder)
}

/// A server whose address the test knows, with an answer, one that leads elsewhere, and one that is too long.
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
    // A redirect is an answer: where it leads is not for the other host to say.
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
