//! Bytes that no client sends: each connection is answered or closed, nothing breaks, and the next one is answered.

use std::time::Duration;

use fuzz::mutated;
use proptest::prelude::*;
use tests::{DEADLINE, Supervisor};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::time::timeout;

/// How long a client waits for an answer to a request that may be incomplete.
const BEGIN: Duration = Duration::from_millis(100);
/// No answer is longer, except streams without an end.
const ENOUGH: usize = 4 << 20;
/// The type in the head of such an answer: its client is still reading, even if it sends no more.
const ENDLESS: &[u8] = b"text/event-stream";

/// Requests; `KEY` is replaced with the device's key.
const REQUESTS: &[&str] = &[
    "GET /ping HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "GET /v1/device HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer KEY\r\n\r\n",
    "GET /v2/state/status?apikey=KEY HTTP/1.1\r\nHost: localhost:48484\r\nAccept: */*\r\n\r\n",
    "GET /v3/plugins HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer KEY\r\nOrigin: http://127.0.0.1\r\n\r\n",
    "GET /v3/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer KEY\r\nLast-Event-ID: 7\r\n\r\n",
    "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer KEY\r\nAccept-Encoding: gzip\r\n\r\n",
    "GET /v2/device/name HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer KEY\r\n\r\n\
     GET /ping HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
    "PATCH /v1/device/host-config HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer KEY\r\n\
     Content-Type: application/json\r\nContent-Length: 16\r\n\r\n{\"network\": null}",
    "POST /v2/applications/1/restart-service HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer KEY\r\n\
     Content-Type: application/json\r\nContent-Length: 31\r\n\r\n{\"serviceName\":\"web\",\"force\":1}",
    "POST /v1/update HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer KEY\r\nContent-Type: application/json\r\n\
     Transfer-Encoding: chunked\r\n\r\n5\r\n{\"for\r\n9\r\nce\":true}\r\n0\r\n\r\n",
    "POST /v2/local/target-state HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer KEY\r\n\
     Content-Type: application/json\r\nContent-Length: 21\r\n\r\n{\"local\":{\"apps\":{}}}",
    "POST /v2/journal-logs HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer KEY\r\n\
     Content-Type: application/json\r\nContent-Length: 11\r\n\r\n{\"count\":1}",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n",
    "OPTIONS * HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n",
];
const WORDS: &[&str] = &[
    "\r\n",
    "\r",
    "\n",
    " ",
    "\t",
    ":",
    "\u{0}",
    "GET ",
    "HEAD ",
    "TRACE ",
    "get ",
    " HTTP/1.0\r\n",
    " HTTP/0.9",
    "Host: evil.example\r\n",
    "Host: 127.0.0.1\r\n",
    "Origin: null\r\n",
    "Content-Length: 5\r\n",
    "Content-Length: -1\r\n",
    "Content-Length: 99999999999999999999\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: identity\r\n",
    "Expect: 100-continue\r\n",
    "Range: bytes=0-,0-,0-\r\n",
    "Authorization: Basic \r\n",
    "Authorization: Bearer \r\n",
    "?apikey=",
    "%00",
    "%2e%2e/",
    "%",
    "../",
    "//",
    "http://example.org/",
    "?",
    "&",
    "#",
    "/v1/",
    "/v2/",
    "/v3/",
    "0\r\n\r\n",
    "ffffffffffffffff\r\n",
    "{",
    "}",
    "[",
    "null",
    "1e999",
    "\\u0000",
    "Connection: close\r\n",
];

async fn exchange(address: &str, bytes: &[u8]) -> Result<Vec<u8>, String> {
    let talk = async {
        let mut socket = TcpStream::connect(address).await?;
        // The device may already have answered and closed it.
        let _ = socket.write_all(bytes).await;
        let mut answer = Vec::new();
        // Only then does the client end: a server need not answer a client that is gone.
        let _ = timeout(BEGIN, socket.read_buf(&mut answer)).await;
        let _ = socket.shutdown().await;
        let is_endless = |answer: &[u8]| answer.windows(ENDLESS.len()).any(|part| part == ENDLESS);
        while answer.len() < ENOUGH && !is_endless(&answer) {
            // The device may have closed it with some of our bytes unread.
            if matches!(socket.read_buf(&mut answer).await, Ok(0) | Err(_)) {
                break;
            }
        }
        Ok::<_, std::io::Error>(answer)
    };
    match timeout(DEADLINE, talk).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(format!("no connection: {error}")),
        Err(_) => Err("the connection was neither answered to its end nor closed".to_owned()),
    }
}

/// Returns the status of the first answer, unless the connection was closed without one.
fn status(answer: &[u8]) -> Option<u16> {
    let text = answer.strip_prefix(b"HTTP/1.")?;
    std::str::from_utf8(text.get(2..5)?).ok()?.parse().ok()
}

#[test]
fn any_bytes_sent_to_the_api_are_answered_or_refused() {
    let runtime = Runtime::new().unwrap();
    let mut device = runtime.block_on(Supervisor::on_wasm().start());
    let address = device.base().trim_start_matches("http://").to_owned();
    let (key, pid) = (device.key().to_owned(), device.pid());
    let requests = REQUESTS.iter().map(|text| (*text).to_owned()).collect();
    fuzz::run("device-http", 400, &mutated(requests, WORDS), |text| {
        let bytes = text.replace("KEY", &key).into_bytes();
        let answer = runtime.block_on(exchange(&address, &bytes));
        let answer = answer.map_err(TestCaseError::fail)?;
        if let Some(status) = status(&answer) {
            let shown = String::from_utf8_lossy(&answer);
            prop_assert!(
                (100..500).contains(&status) || status == 503,
                "{:.2000}",
                shown
            );
        }
        let ping = b"GET /ping HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
        let ping = runtime.block_on(async {
            let mut socket = TcpStream::connect(&address).await?;
            socket.write_all(ping).await?;
            let mut answer = Vec::new();
            socket.read_to_end(&mut answer).await?;
            Ok::<_, std::io::Error>(answer)
        });
        let ping = ping.map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(status(&ping), Some(200));
        Ok(())
    });
    assert_eq!(device.pid(), pid);
    let log = device.log();
    assert!(!log.contains("panicked"), "{log}");
    assert!(runtime.block_on(device.terminate()).success());
}
