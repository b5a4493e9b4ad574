//! The API on a socket: what needs a connection to go wrong.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::fake::{FakeDevice, Fixture, fixture};
use crate::serve::MAX_CONNECTIONS;
use crate::{LocalModeAuth, serve};

/// Longer than anything here takes unless it hangs.
const DEADLINE: Duration = Duration::from_secs(20);

struct Served {
    fixture: Fixture,
    address: std::net::SocketAddr,
    server: JoinHandle<()>,
}

async fn served(device: FakeDevice) -> Served {
    let fixture = fixture(device, LocalModeAuth::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(serve(fixture.app.clone(), vec![listener]));
    Served {
        fixture,
        address,
        server,
    }
}

impl Served {
    async fn send(&self, request: impl AsRef<[u8]>) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.as_ref()).await.unwrap();
        stream
    }
}

/// All that comes until the connection ends.
async fn rest(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    tokio::time::timeout(DEADLINE, stream.read_to_end(&mut text))
        .await
        .expect("the connection stays open")
        .unwrap();
    String::from_utf8(text).unwrap()
}

/// What comes until `end` has come.
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
                "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
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
async fn a_panic_leaves_the_connection_open() {
    let device = served(FakeDevice {
        panics: true,
        ..FakeDevice::default()
    })
    .await;
    let ask = |path: &str| {
        format!(
            "GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\r\n",
            device.fixture.key
        )
    };
    let mut stream = device.send(ask("/v1/device")).await;
    assert!(
        until(&mut stream, "says where")
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
        .send("HEAD /ping HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .await;
    let answer = rest(&mut stream).await;
    assert!(answer.contains("content-length: 2\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\n"), "{answer}");
}

#[tokio::test]
async fn what_is_not_http_is_refused_and_leaves_others_alone() {
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
        .send("GET /ping HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .await;
    assert!(rest(&mut stream).await.ends_with("OK"));
}

#[tokio::test]
async fn clients_that_send_no_head_go_and_make_room_for_others() {
    let device = served(FakeDevice::default()).await;
    let mut idle = Vec::new();
    for number in 0..MAX_CONNECTIONS {
        let begun = if number % 2 == 0 {
            ""
        } else {
            "GET /ping HTTP/1.1\r\nHost:"
        };
        idle.push(device.send(begun).await);
    }
    // All places are taken; this one waits for the others to be told to go.
    let mut patient = device
        .send("GET /ping HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .await;
    assert!(rest(&mut patient).await.ends_with("OK"));
    for mut stream in idle {
        let answer = rest(&mut stream).await;
        assert!(!answer.contains("200"), "{answer}");
    }
}

#[tokio::test]
async fn stopping_ends_streams_at_once_and_lets_requests_finish() {
    let device = served(local_mode()).await;
    let mut log = device
        .send("GET /v2/local/logs HTTP/1.1\r\nHost: x\r\n\r\n")
        .await;
    until(&mut log, "lines were lost").await;
    let body = r#"{"local":{"apps":{}}}"#;
    let mut target = device
        .send(format!(
            "POST /v2/local/target-state HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
             Expect: 100-continue\r\nContent-Length: {}\r\n\r\n",
            body.len()
        ))
        .await;
    // The request is under way once the server asks for its body.
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
