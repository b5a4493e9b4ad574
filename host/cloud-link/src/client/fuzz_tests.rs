//! Answers that no cloud of ours sends: every answer is soon read or refused with an error message, and if it is read
//! as a target state, it is refused or accepted like any other.

use std::time::Instant;

use flate2::Compression;
use flate2::write::GzEncoder;
use fuzz::mutated;
use model::{Branding, TargetState};
use proptest::collection::vec;
use proptest::prelude::*;
use std::io::Write as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use super::tests::{UUID, client};
use super::*;

/// For each phase of an exchange.
const LIMIT: Duration = Duration::from_millis(300);
/// Far longer than the limits of an exchange.
const PATIENCE: Duration = Duration::from_secs(30);

const ANSWERS: &[&str] = &[
    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\netag: \"a\"\r\ncontent-length: 70\r\n\r\n\
     {\"0123456789abcdef0123456789abcdef\":{\"name\":\"a\",\"config\":{},\"apps\":{}}}",
    "HTTP/1.1 304 Not Modified\r\n\r\n",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\n{\"d\":[{}]\r\n1\r\n}\r\n0\r\n\r\n",
    "HTTP/1.1 429 Too Many Requests\r\nretry-after: 30\r\ncontent-length: 4\r\n\r\nlate",
    "HTTP/1.1 503 Service Unavailable\r\nretry-after: Wed, 21 Oct 2099 07:28:00 GMT\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n",
    "HTTP/1.1 301 Moved Permanently\r\nlocation: http://127.0.0.1:1/x\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer\r\ncontent-length: 12\r\n\r\nUnauthorized",
];
const WORDS: &[&str] = &[
    "\r\n",
    "\r",
    "\n",
    "\r\n\r\n",
    ": ",
    "HTTP/1.1 ",
    "HTTP/2 ",
    "200",
    "204",
    "304",
    "999",
    "-1",
    "content-length: ",
    "content-length: 18446744073709551616\r\n",
    "content-length: 3\r\n",
    "transfer-encoding: chunked\r\n",
    "transfer-encoding: gzip, chunked\r\n",
    "content-encoding: gzip\r\n",
    "content-encoding: br\r\n",
    "etag: ",
    "\"\u{e9}\"",
    "retry-after: 99999999999999999999\r\n",
    "retry-after: -1\r\n",
    "connection: close\r\n",
    "location: file:///etc/passwd\r\n",
    "set-cookie: a=b\r\n",
    "ffffffffffffffff\r\n",
    "0\r\n\r\n",
    "{",
    "}",
    "[",
    "]",
    "\"d\":",
    "null",
    "1e999",
    "\u{0}",
];

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(body).expect("memory");
    packed.finish().expect("memory")
}

/// The bytes of one answer: texts with changes, followed by bodies that are packed correctly or badly.
fn answers() -> impl Strategy<Value = Vec<u8>> {
    let corpus = ANSWERS.iter().map(|text| (*text).to_owned()).collect();
    let packed = prop_oneof![
        6 => Just(Vec::new()),
        1 => vec(any::<u8>(), 0..60),
        1 => Just(gzip(b"{\"d\":[]}")),
        // Unpacks to far more than its size.
        1 => Just(gzip(&vec![b' '; 40 << 20])),
        1 => (0_usize..20).prop_map(|cut| {
            let mut packed = gzip(b"{\"d\":[1,2,3]}");
            packed.truncate(packed.len() - cut);
            packed
        }),
        1 => Just(gzip("[".repeat(200_000).as_bytes())),
    ];
    (mutated(corpus, WORDS), packed).prop_map(|(text, packed)| [text.into_bytes(), packed].concat())
}

/// Starts a server that answers each connection with the bytes it receives from the test, and closes it.
async fn serve() -> (String, mpsc::UnboundedSender<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("its address");
    let (sender, mut answers) = mpsc::unbounded_channel::<Vec<u8>>();
    tokio::spawn(async move {
        let mut answer = Vec::new();
        while let Ok((mut socket, _)) = listener.accept().await {
            // The same again, if the client retries by itself.
            while let Ok(next) = answers.try_recv() {
                answer = next;
            }
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let Ok(byte) = socket.read_u8().await else {
                    break;
                };
                head.push(byte);
            }
            let _ = socket.write_all(&answer).await;
            let _ = socket.shutdown().await;
        }
    });
    (format!("http://{address}"), sender)
}

fn in_words(error: &CloudError) -> Result<(), TestCaseError> {
    let text = model::error_chain(error).to_string();
    prop_assert!(
        !text.is_empty() && text.len() < 2_000,
        "{} bytes",
        text.len()
    );
    prop_assert!(!text.contains(['\n', '\r', '\u{1b}']), "{:?}", text);
    Ok(())
}

#[test]
fn any_answer_of_a_cloud_is_read_or_refused() {
    let runtime = Runtime::new().expect("a runtime");
    let (address, answer) = runtime.block_on(serve());
    fuzz::run("cloud-answers", 300, &answers(), |bytes| {
        let begun = Instant::now();
        let client = client(&address);
        answer.send(bytes).expect("the server");
        let (target, records, patched) = runtime.block_on(async {
            let target = client.target(Some("\"a\""), LIMIT).await;
            let records = client
                .records("device_tag", &["id".to_owned()], LIMIT)
                .await;
            let patched = client.patch("state", &serde_json::json!({}), LIMIT).await;
            (target, records, patched)
        });
        match target {
            Ok(TargetAnswer::Unchanged) => {}
            Ok(TargetAnswer::New { body, etag }) => {
                prop_assert!(etag.is_none_or(|etag| etag.len() <= MAX_ETAG));
                let device = UUID.parse().expect("a uuid");
                if let Err(errors) =
                    TargetState::from_cloud_json(&body, &device, &Branding::default())
                {
                    prop_assert!(errors.to_string().len() < 200_000);
                }
            }
            Err(error) => in_words(&error)?,
        }
        match records {
            Ok(rows) => prop_assert!(rows.len() <= MAX_ROWS),
            Err(error) => in_words(&error)?,
        }
        if let Err(error) = patched {
            in_words(&error)?;
        }
        prop_assert!(begun.elapsed() < PATIENCE, "it took {:?}", begun.elapsed());
        Ok(())
    });
}
