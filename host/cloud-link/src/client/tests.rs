use std::io::Write as _;
use std::net::SocketAddr;

use flate2::Compression;
use flate2::write::GzEncoder;
use model::DeviceUuid;
use serde_json::{Map, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use std::error::Error;

use super::*;
use crate::{ConfigFile, PlainHttp, establish};

const LIMIT: Duration = Duration::from_secs(20);
pub(super) const UUID: &str = "0123456789abcdef0123456789abcdef";

struct File(Value);

impl ConfigFile for File {
    fn read(&self) -> Result<Map<String, Value>, Box<dyn Error + Send + Sync>> {
        Ok(self.0.as_object().unwrap().clone())
    }

    fn update(
        &self,
        _: &mut dyn FnMut(&mut Map<String, Value>),
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        panic!("the identity is whole")
    }
}

pub(super) fn client(endpoint: &str) -> Client {
    let config = File(json!({
        "uuid": UUID, "apiEndpoint": endpoint, "deviceApiKey": "device-key", "deviceId": 7, "registered_at": 1,
    }));
    let own: DeviceUuid = UUID.parse().unwrap();
    let identity = establish(&config, &own, "rootCA", PlainHttp::Loopback)
        .unwrap()
        .cloud
        .unwrap();
    Client::new(
        identity,
        &user_agent("19.0.0", Some("Some OS 1.2"), Some("prod")),
    )
}

/// Starts a server that answers each connection with the next of `answers`, byte for byte, and passes on the requests.
/// If an answer ends with `…`, the connection stays open and silent.
async fn serve(answers: Vec<Vec<u8>>) -> (SocketAddr, UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, requests) = unbounded_channel();
    tokio::spawn(async move {
        let mut silent = Vec::new();
        for answer in answers {
            let Ok((mut socket, _)) = listener.accept().await else {
                return;
            };
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let Ok(byte) = socket.read_u8().await else {
                    break;
                };
                head.push(byte);
            }
            let _ = tell.send(String::from_utf8(head).unwrap());
            let stays = answer.strip_suffix("…".as_bytes());
            let _ = socket.write_all(stays.unwrap_or(&answer)).await;
            if stays.is_some() {
                silent.push(socket);
            }
        }
        std::future::pending::<()>().await;
    });
    (address, requests)
}

fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n"
    );
    [head.as_bytes(), body].concat()
}

async fn target_from(answers: Vec<Vec<u8>>, limit: Duration) -> Result<TargetAnswer, CloudError> {
    let (address, _) = serve(answers).await;
    client(&format!("http://{address}/"))
        .target(None, limit)
        .await
}

#[tokio::test]
async fn the_target_is_asked_for_with_key_etag_and_user_agent() {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(b"{\"a\":1}").unwrap();
    let packed = packed.finish().unwrap();
    let (address, mut requests) = serve(vec![
        answer(
            "200 OK",
            "etag: \"one\"\r\ncontent-encoding: gzip\r\n",
            &packed,
        ),
        answer("304 Not Modified", "", b""),
    ])
    .await;
    let client = client(&format!("http://{address}/base/"));
    let expected = TargetAnswer::New {
        body: json!({"a": 1}),
        etag: Some("\"one\"".into()),
    };
    assert_eq!(client.target(None, LIMIT).await.unwrap(), expected);
    let request = requests.recv().await.unwrap();
    let first = format!("GET /base/device/v3/{UUID}/state HTTP/1.1\r\n");
    assert!(request.starts_with(&first), "{request}");
    for line in [
        "authorization: Bearer device-key\r\n",
        "user-agent: Supervisor/19.0.0 (Linux; Some OS 1.2; prod)\r\n",
        "accept-encoding: gzip\r\n",
    ] {
        assert!(request.contains(line), "{request}");
    }
    assert!(!request.contains("if-none-match"), "{request}");

    let again = client.target(Some("\"one\""), LIMIT).await.unwrap();
    assert_eq!(again, TargetAnswer::Unchanged);
    let request = requests.recv().await.unwrap();
    assert!(request.contains("if-none-match: \"one\"\r\n"), "{request}");
}

#[tokio::test]
async fn refusals_carry_their_status_their_wait_and_the_beginning_of_their_text() {
    let long = "x\n".repeat(100_000);
    let refusal = answer(
        "429 Too Many Requests",
        "retry-after: 77\r\n",
        long.as_bytes(),
    );
    let error = target_from(vec![refusal], LIMIT).await.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_secs(77)));
    let text = error.to_string();
    assert!(
        text.starts_with("the cloud answered 429 Too Many Requests: x x"),
        "{text}"
    );
    assert!(text.len() < 300);
}

#[tokio::test]
async fn answers_that_are_too_long_too_deep_broken_off_or_malformed_are_refused() {
    let announced = b"HTTP/1.1 200 OK\r\ncontent-length: 17000000\r\n\r\n".to_vec();
    let mut endless = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    for _ in 0..17 {
        endless.extend(b"100000\r\n");
        endless.resize(endless.len() + (1 << 20), b' ');
        endless.extend(b"\r\n");
    }
    for (answered, expected) in [
        ([announced, "…".into()].concat(), "longer than 16 MiB"),
        ([endless, "…".into()].concat(), "longer than 16 MiB"),
        (
            answer("200 OK", "", "[".repeat(1000).as_bytes()),
            "recursion limit",
        ),
        (answer("200 OK", "", b"<html>"), "not JSON"),
        (answer("204 No Content", "", b""), "not JSON"),
        (
            answer("200 OK", "content-encoding: br\r\n", b"{}"),
            "in the requested encoding",
        ),
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{}".to_vec(),
            "cannot be reached",
        ),
        (b"SSH-2.0-x\r\n".to_vec(), "cannot be reached"),
    ] {
        let error = target_from(vec![answered], LIMIT).await.unwrap_err();
        let text = model::error_chain(&error);
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[tokio::test]
async fn a_cloud_that_stalls_is_given_up_in_each_phase() {
    let short = Duration::from_millis(50);
    for answered in ["…", "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{…"] {
        let error = target_from(vec![answered.into()], short).await.unwrap_err();
        assert!(
            matches!(
                error,
                CloudError::Timeout { .. } | CloudError::Unreachable(_)
            ),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn redirects_are_bounded_and_take_the_key_to_no_other_host() {
    let (other, mut requests) = serve(vec![answer("200 OK", "", b"{}")]).await;
    let port = other.port();
    let to_other = format!("location: http://localhost:{port}/moved\r\n");
    let moved = answer("307 Temporary Redirect", &to_other, b"");
    assert!(target_from(vec![moved], LIMIT).await.is_ok());
    let request = requests.recv().await.unwrap();
    assert!(request.starts_with("GET /moved "), "{request}");
    assert!(!request.contains("device-key"), "{request}");

    let round = answer("302 Found", "location: /again\r\n", b"");
    let error = target_from(vec![round; 9], LIMIT).await.unwrap_err();
    assert!(
        model::error_chain(&error).contains("redirects too often"),
        "{error:?}"
    );
}

#[tokio::test]
async fn records_are_asked_for_by_name_and_for_this_device_alone() {
    let rows = br#"{"d":[{"id":1,"tag_key":"a","value":"b"}]}"#;
    let (address, mut requests) = serve(vec![
        answer("200 OK", "", rows),
        answer("200 OK", "", b"{}"),
    ])
    .await;
    let client = client(&format!("http://{address}"));
    let fields = ["id".to_owned(), "tag_key".to_owned()];
    let found = client.records("device_tag", &fields, LIMIT).await.unwrap();
    assert_eq!(found[0]["tag_key"], "a");
    let request = requests.recv().await.unwrap();
    let line = "GET /v7/device_tag?%24select=id%2Ctag_key&%24filter=device%20eq%207 HTTP/1.1\r\n";
    assert!(request.starts_with(line), "{request}");

    let shapeless = client
        .records("device_tag", &fields, LIMIT)
        .await
        .unwrap_err();
    assert!(matches!(shapeless, CloudError::Shape(_)), "{shapeless:?}");
    for hostile in ["device?$filter=true", "a/b", "", "A", "a b", "a,b"] {
        for (resource, field) in [(hostile, "id"), ("device_tag", hostile)] {
            let refused = client.records(resource, &[field.to_owned()], LIMIT).await;
            assert!(matches!(refused, Err(CloudError::Invalid(_))), "{hostile}");
        }
    }
}

#[test]
fn the_user_agent_leaves_out_what_is_not_known_and_what_a_header_cannot_hold() {
    for (os, variant, agent) in [
        (
            Some("Some OS 1.2"),
            Some("prod"),
            "Supervisor/1.2.3 (Linux; Some OS 1.2; prod)",
        ),
        (None, None, "Supervisor/1.2.3 (Linux)"),
        (
            Some("A (b);\r\nX: ü"),
            None,
            "Supervisor/1.2.3 (Linux; A bX: )",
        ),
    ] {
        assert_eq!(user_agent("1.2.3", os, variant), agent);
    }
}
