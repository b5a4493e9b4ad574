//! The API on a socket: errors that only occur with a connection.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::DEADLINE;
use crate::bounds::LISTENER_CONNECTIONS;
use crate::fake::{FakeDevice, Fixture, fixture};
use crate::{KeylessAccess, ListenSwitch, Listener, LocalModeAuth, serve};

struct SocketServer {
    fixture: Fixture,
    address: std::net::SocketAddr,
    server: JoinHandle<()>,
}

async fn served(device: FakeDevice) -> SocketServer {
    let fixture = fixture(device, LocalModeAuth::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let listener = Listener {
        socket: listener,
        keyless: KeylessAccess {
            auth: LocalModeAuth::LocalEndpoints,
            ..KeylessAccess::default()
        },
    };
    let listening = ListenSwitch::default();
    let server = tokio::spawn(serve(fixture.app.clone(), vec![listener], listening));
    SocketServer {
        fixture,
        address,
        server,
    }
}

impl SocketServer {
    async fn send(&self, request: impl AsRef<[u8]>) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.as_ref()).await.unwrap();
        stream
    }
}

/// Returns everything that is received until the connection ends.
async fn rest(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    tokio::time::timeout(DEADLINE, stream.read_to_end(&mut text))
        .await
        .expect("the connection stays open")
        .unwrap();
    String::from_utf8(text).unwrap()
}

/// Returns everything that is received, up to and including `end`.
async fn until(stream: &mut TcpStream, end: &str) -> String {
    let mut text = String::new();
    while !text.contains(end) {
        let mut buffer = [0; 4096];
        let read = tokio::time::timeout(DEADLINE, stream.read(&mut buffer))
            .await
            .expect("nothing more comes")
            .unwrap();
        assert_ne!(read, 0, "ended before {end:?}: {text}");
        text.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
    }
    text
}

fn local_mode() -> FakeDevice {
    FakeDevice {
        local_mode: true,
        ..FakeDevice::default()
    }
}

#[tokio::test]
async fn a_client_that_is_refused_in_the_middle_of_its_body_still_reads_why() {
    let device = served(local_mode()).await;
    for (key, status) in [(device.fixture.key.as_str(), 413), ("wrong", 401)] {
        let length = 12 << 20;
        let path = if status == 413 {
            "/v2/local/target-state"
        } else {
            "/v1/blink"
        };
        let mut stream = device
            .send(format!(
                "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                 Authorization: Bearer {key}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
            ))
            .await;
        stream.write_all(&vec![b' '; length]).await.unwrap();
        let answer = rest(&mut stream).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn a_page_of_another_site_is_refused_and_others_are_not() {
    let device = served(local_mode()).await;
    for (headers, status) in [
        ("Host: localhost", 200),
        ("Host: board.local:48484", 200),
        ("Host: evil.example", 403),
        ("Host: localhost\r\nOrigin: http://evil.example", 403),
        ("Host: evil.example\r\nOrigin: http://evil.example", 403),
        ("Host: localhost\r\nOrigin: http://localhost", 200),
    ] {
        for path in [
            "/ping",
            "/v1/healthy",
            "/v2/local/target-state",
            "/v2/version",
        ] {
            let key = &device.fixture.key;
            let mut stream = device
                .send(format!(
                    "GET {path} HTTP/1.1\r\n{headers}\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n\r\n"
                ))
                .await;
            let answer = rest(&mut stream).await;
            let expected = format!("HTTP/1.1 {status} ");
            assert!(answer.starts_with(&expected), "{path} {headers}: {answer}");
        }
    }
}

#[tokio::test]
async fn a_panic_leaves_the_connection_open() {
    let device = served(FakeDevice {
        panics: true,
        ..FakeDevice::default()
    })
    .await;
    let ask = |path: &str| {
        format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n",
            device.fixture.key
        )
    };
    let mut stream = device.send(ask("/v1/device")).await;
    assert!(
        until(&mut stream, "says why")
            .await
            .starts_with("HTTP/1.1 500 ")
    );
    stream.write_all(ask("/ping").as_bytes()).await.unwrap();
    assert!(until(&mut stream, "OK").await.contains("HTTP/1.1 200 "));
}

#[tokio::test]
async fn a_head_request_gets_the_head_alone() {
    let device = served(FakeDevice::default()).await;
    let mut stream = device
        .send("HEAD /ping HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .await;
    let answer = rest(&mut stream).await;
    assert!(answer.contains("content-length: 2\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\n"), "{answer}");
}

#[tokio::test]
async fn bytes_that_are_not_http_are_refused_and_do_not_affect_others() {
    let device = served(FakeDevice::default()).await;
    for garbage in [
        "\x16\x03\x01\r\n\r\n".to_owned(),
        "GET / HTTP/1.1\r\nno colon\r\n\r\n".to_owned(),
        format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(100_000)),
    ] {
        let mut stream = device.send("").await;
        // The server may answer and close before all of it is written.
        let _ = stream.write_all(garbage.as_bytes()).await;
        let mut answer = Vec::new();
        let _ = tokio::time::timeout(DEADLINE, stream.read_to_end(&mut answer))
            .await
            .expect("the connection stays open");
    }
    let mut stream = device
        .send("GET /ping HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .await;
    assert!(rest(&mut stream).await.ends_with("OK"));
}

const PING: &str = "GET /ping HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

#[tokio::test]
async fn clients_that_send_no_head_go() {
    let device = served(FakeDevice::default()).await;
    for begun in ["", "GET /ping HTTP/1.1\r\nHost:"] {
        let answer = rest(&mut device.send(begun).await).await;
        assert!(!answer.contains("200"), "{answer}");
    }
}

#[tokio::test]
async fn clients_without_a_key_keep_nobody_out() {
    let device = served(FakeDevice::default()).await;
    // Each unfinished request occupies its place for seconds, and nobody waits for that.
    let mut connections = Vec::new();
    for number in 0..3 * LISTENER_CONNECTIONS {
        let begun = ["", "GET /ping HTTP/1.1\r\nHost:", "GET /ping"][number % 3];
        connections.push(device.send(begun).await);
        if number % LISTENER_CONNECTIONS == LISTENER_CONNECTIONS - 1 {
            assert!(rest(&mut device.send(PING).await).await.ends_with("OK"));
        }
    }
}

#[tokio::test]
async fn a_client_that_has_shown_a_key_keeps_its_connection() {
    let device = served(FakeDevice::default()).await;
    let ask = format!(
        "GET /v2/version HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n",
        device.fixture.key
    );
    let mut with_key = device.send(&ask).await;
    until(&mut with_key, "success").await;
    let mut without_key = Vec::new();
    for _ in 0..2 * LISTENER_CONNECTIONS {
        without_key.push(device.send("GET /ping").await);
    }
    assert!(rest(&mut device.send(PING).await).await.ends_with("OK"));
    with_key.write_all(ask.as_bytes()).await.unwrap();
    until(&mut with_key, "success").await;
}

#[tokio::test]
async fn a_connection_ends_with_the_first_401() {
    let device = served(FakeDevice::default()).await;
    let ask = "GET /v1/device HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let answers = rest(&mut device.send(ask.repeat(50)).await).await;
    assert_eq!(answers.matches("HTTP/1.1 401 ").count(), 1, "{answers}");
    assert!(answers.contains("connection: close"), "{answers}");
    // The answer arrives, whatever is sent with the request.
    let long = 1 << 20;
    let mut stream = device
        .send(format!(
            "POST /v1/blink HTTP/1.1\r\nHost: localhost\r\nContent-Length: {long}\r\n\r\n"
        ))
        .await;
    stream.write_all(&vec![b' '; long]).await.unwrap();
    assert!(rest(&mut stream).await.starts_with("HTTP/1.1 401 "));
}

#[tokio::test]
async fn an_answer_that_nobody_reads_ends_its_connection() {
    let device = served(FakeDevice::default()).await;
    let ask = format!(
        "GET /v3/openapi.json HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n",
        device.fixture.key
    );
    let mut stream = device.send("").await;
    // The server accepts no more requests while its answers are not read, and finally closes: either this write fails
    // in the middle, or the next one does.
    let written = tokio::time::timeout(DEADLINE, async {
        loop {
            if let Err(error) = stream.write_all(ask.as_bytes()).await {
                return error;
            }
        }
    });
    let error = written.await.expect("the connection stays open");
    assert!(
        matches!(
            error.kind(),
            std::io::ErrorKind::ConnectionReset | std::io::ErrorKind::BrokenPipe
        ),
        "{error}"
    );
}

#[tokio::test]
async fn stopping_ends_streams_at_once_and_lets_requests_finish() {
    let device = served(local_mode()).await;
    let mut log = device
        .send("GET /v2/local/logs HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await;
    until(&mut log, "lines were lost").await;
    let body = r#"{"local":{"apps":{}}}"#;
    let mut target = device
        .send(format!(
            "POST /v2/local/target-state HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Expect: 100-continue\r\nContent-Length: {}\r\n\r\n",
            body.len()
        ))
        .await;
    // The request is in progress once the server asks for its body.
    until(&mut target, "100 Continue").await;

    device.fixture.stopping.cancel();
    assert!(rest(&mut log).await.ends_with("0\r\n\r\n"));
    target.write_all(body.as_bytes()).await.unwrap();
    assert!(rest(&mut target).await.contains("\"OK\""));
    tokio::time::timeout(DEADLINE, device.server)
        .await
        .expect("the server goes on")
        .unwrap();
}
