//! Bodies in pieces.

use wit_bindgen::StreamResult;

use crate::bindings::platform::supervisor::types::{Body, Error, Request, Response};
use crate::bindings::platform::supervisor::{journal, timer};
use crate::bindings::wit_stream;
use crate::{argument, milliseconds, text};

/// Handles a request; returns it if `what` is something else.
pub(crate) async fn handle(
    what: &str,
    request: Request,
) -> Result<Result<Response, Error>, Request> {
    Ok(match what {
        // Returns the received body itself.
        "echo" => stream(request.body),
        "journal" => journal_to_its_reader().await,
        "journal-start" => start_of_the_journal().await,
        // The first byte upper case, the rest as it came.
        "count" => count(request).await,
        "shout" => shout(request),
        // Endless pieces, with a wait of `?ms=` in between.
        "endless" => endless(milliseconds(&request)),
        "trap-in-stream" => trap(),
        "spin-in-stream" => spin(),
        "pieces" => pieces(
            argument(&request, "count")
                .and_then(|text| text.parse().ok())
                .unwrap_or(3),
        ),
        _ => return Err(request),
    })
}

fn stream(body: Body) -> Result<Response, Error> {
    Ok(Response {
        status: 200,
        headers: Vec::new(),
        body,
    })
}

/// Returns the journal as a stream, whose beginning this guest has read itself.
async fn journal_to_its_reader() -> Result<Response, Error> {
    let mut journal = journal().await;
    let (_, begun) = journal.read(Vec::with_capacity(8)).await;
    assert_eq!(begun, b"a line o");
    stream(Body::Stream(journal))
}

/// Returns the beginning of the journal, read by this guest.
async fn start_of_the_journal() -> Result<Response, Error> {
    let mut journal = journal().await;
    let mut all = Vec::new();
    while all.len() < 100_000 {
        let (status, bytes) = journal.read(Vec::with_capacity(1000)).await;
        assert!(matches!(status, StreamResult::Complete(_)));
        all.extend(bytes);
    }
    all.truncate(100_000);
    text(String::from_utf8(all).unwrap())
}

async fn journal() -> wit_bindgen::StreamReader<u8> {
    let options = journal::Options {
        all: false,
        follow: false,
        unit: None,
        identifier: None,
        count: None,
        since: None,
        until: None,
        format: None,
    };
    journal::read(options).await.unwrap()
}

/// Reads the whole body, and returns its size and form.
async fn count(request: Request) -> Result<Response, Error> {
    match request.body {
        Body::Empty => text("empty 0"),
        Body::Bytes(bytes) => text(format!("bytes {}", bytes.len())),
        Body::Stream(mut stream) => {
            let mut total = 0;
            loop {
                let (status, bytes) = stream.read(Vec::with_capacity(64 << 10)).await;
                total += bytes.len();
                if !matches!(status, StreamResult::Complete(_)) {
                    return text(format!("stream {total}"));
                }
            }
        }
    }
}

/// Returns the body in upper case, piece by piece.
fn shout(request: Request) -> Result<Response, Error> {
    let (mut writer, reader) = wit_stream::new::<u8>();
    let mut body = match request.body {
        Body::Empty => return stream(Body::Empty),
        Body::Bytes(bytes) => return stream(Body::Bytes(bytes.to_ascii_uppercase())),
        Body::Stream(body) => body,
    };
    wit_bindgen::spawn_local(async move {
        loop {
            let (status, bytes) = body.read(Vec::with_capacity(16 << 10)).await;
            if !writer
                .write_all(bytes.to_ascii_uppercase())
                .await
                .is_empty()
            {
                return;
            }
            if !matches!(status, StreamResult::Complete(_)) {
                return;
            }
        }
    });
    stream(Body::Stream(reader))
}

fn endless(pause: u32) -> Result<Response, Error> {
    let (mut writer, reader) = wit_stream::new::<u8>();
    wit_bindgen::spawn_local(async move {
        while writer.write_all(vec![b'x'; 4096]).await.is_empty() {
            if pause != u32::MAX {
                timer::sleep(pause).await;
            }
        }
    });
    stream(Body::Stream(reader))
}

fn pieces(count: u32) -> Result<Response, Error> {
    let (mut writer, reader) = wit_stream::new::<u8>();
    wit_bindgen::spawn_local(async move {
        for number in 0..count {
            if !writer
                .write_all(format!("piece {number}\n").into_bytes())
                .await
                .is_empty()
            {
                return;
            }
            timer::sleep(1).await;
        }
    });
    stream(Body::Stream(reader))
}

fn trap() -> Result<Response, Error> {
    let (mut writer, reader) = wit_stream::new::<u8>();
    wit_bindgen::spawn_local(async move {
        writer.write_all(b"begun\n".to_vec()).await;
        timer::sleep(1).await;
        panic!("in the middle of a stream");
    });
    stream(Body::Stream(reader))
}

fn spin() -> Result<Response, Error> {
    let (mut writer, reader) = wit_stream::new::<u8>();
    wit_bindgen::spawn_local(async move {
        writer.write_all(b"begun\n".to_vec()).await;
        let mut count = 0_u64;
        loop {
            count = std::hint::black_box(count.wrapping_add(1));
        }
    });
    stream(Body::Stream(reader))
}
