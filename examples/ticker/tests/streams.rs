use bytes::Bytes;
use futures::channel::mpsc;
use http::Request;
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use supervisor_testing::{Host, RunningHost, build};

async fn host() -> RunningHost {
    Host::new()
        .plugin(build(env!("CARGO_MANIFEST_DIR")))
        .start()
        .await
}

#[tokio::test]
async fn a_counted_stream_ends_by_itself() {
    let answer = host().await.get("/v3/ticks?count=3&every_ms=1").await;
    assert_eq!(answer.text(), "tick 1\ntick 2\ntick 3\n");
    assert_eq!(answer.headers["content-type"], "text/plain; charset=utf-8");
}

#[tokio::test]
async fn an_endless_stream_arrives_piece_by_piece_and_ends_with_its_reader() {
    let host = host().await;
    let request = Request::get("/v3/ticks?every_ms=1")
        .body(String::new())
        .unwrap();
    let mut body = host.call(request).await.into_body();
    let mut seen = String::new();
    while !seen.contains("tick 5\n") {
        let frame = body.frame().await.unwrap().unwrap();
        seen.push_str(str::from_utf8(&frame.into_data().unwrap()).unwrap());
    }
    drop(body);
    assert_eq!(host.get("/v3/ticks?count=1").await.text(), "tick 1\n");
    assert_eq!(host.report().await[0]["failures"], 0);
}

/// Returns more than 64 KiB, the amount that the host collects before it calls a plugin.
fn long(letter: &str) -> String {
    letter.repeat(200 << 10)
}

#[tokio::test]
async fn the_answer_to_a_long_body_begins_while_the_body_is_still_coming() {
    let host = host().await;
    let (write, read) = mpsc::unbounded::<Result<Frame<Bytes>, std::io::Error>>();
    let send = |text: String| {
        let sent = write.unbounded_send(Ok(Frame::data(Bytes::from(text))));
        assert!(sent.is_ok());
    };
    send(long("a"));
    let request = Request::post("/v3/shout")
        .body(StreamBody::new(read))
        .unwrap();
    let mut body = host.call(request).await.into_body();
    let mut expect = async |expected: &str| {
        let mut all = String::new();
        while all.len() < expected.len() {
            let frame = body.frame().await.unwrap().unwrap();
            all.push_str(str::from_utf8(&frame.into_data().unwrap()).unwrap());
        }
        assert!(all == expected, "{} bytes: {:.20}", all.len(), all);
    };
    expect(&long("A")).await;
    send("and more".to_owned());
    expect("AND MORE").await;
    drop(write);
    assert!(body.frame().await.is_none());
}

#[tokio::test]
async fn a_body_of_megabytes_streams_through_up_to_the_plugins_limit() {
    let host = host().await;
    let shout = |megabytes: usize| Request::post("/v3/shout").body("a".repeat(megabytes << 20));
    let answer = host.send(shout(3)).await;
    assert!(answer.text() == "A".repeat(3 << 20), "{}", answer.status);
    assert_eq!(host.send(shout(5)).await.status, 413);
}

#[tokio::test]
async fn a_wrong_count_is_reported_by_name() {
    let answer = host().await.get("/v3/ticks?count=many").await;
    assert_eq!(answer.status, 400);
    let message = answer.json()["message"].clone();
    assert_eq!(
        message,
        "query parameter `count` must be a whole number from 0 to 4294967295, not `many`"
    );
}
