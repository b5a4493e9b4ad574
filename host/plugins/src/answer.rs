//! What a plugin answered, on its way to HTTP: checked, since a plugin's word is not enough.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::PollSender;
use wasmtime::StoreContextMut;
use wasmtime::component::{Source, StreamConsumer, StreamResult};

use crate::failure::Failure;
use crate::provision::journal::JournalBody;
use crate::request_body::RequestStream;

/// The most headers of an answer.
const HEADERS: usize = 64;
/// The most bytes of their names and values together.
const HEADER_BYTES: usize = 16 << 10;
/// The most that is taken from a guest's stream at a time, in bytes.
const PIECE: usize = 64 << 10;
/// How many such pieces wait for a slow client.
const PIECES: usize = 2;

/// Headers that say how two neighbours talk: the host's business, not a plugin's.
const HOP_BY_HOP: [HeaderName; 7] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// A checked answer.
pub(crate) struct Answer {
    pub(crate) head: Head,
    pub(crate) body: AnswerBody,
}

/// Status and headers.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
}

pub(crate) enum AnswerBody {
    Whole(Vec<u8>),
    /// The request's own body, taken back out of the guest's hands.
    Spliced(RequestStream),
    /// The host's journal, taken back likewise.
    Journal(JournalBody),
}

impl Head {
    /// Checks what a plugin said.
    pub(crate) fn new(status: u16, headers: &[(String, Vec<u8>)]) -> Result<Head, Failure> {
        let bad = |what: String| Failure::BadAnswer(what);
        let status = StatusCode::from_u16(status)
            .ok()
            .filter(|status| (200..600).contains(&status.as_u16()))
            .ok_or_else(|| bad(format!("the status {status} is not between 200 and 599")))?;
        if headers.len() > HEADERS {
            return Err(bad(format!(
                "{} headers, more than {HEADERS}",
                headers.len()
            )));
        }
        let bytes: usize = headers
            .iter()
            .map(|(name, value)| name.len() + value.len())
            .sum();
        if bytes > HEADER_BYTES {
            return Err(bad(format!(
                "{bytes} bytes of headers, more than {HEADER_BYTES}"
            )));
        }
        let mut map = HeaderMap::with_capacity(headers.len());
        for (name, value) in headers {
            let shown = || name.escape_default().take(100).collect::<String>();
            let key = HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| bad(format!("`{}` is no name of a header", shown())))?;
            let value = HeaderValue::from_bytes(value).map_err(|_| {
                bad(format!(
                    "the header `{}` has a value that HTTP does not allow",
                    shown()
                ))
            })?;
            if HOP_BY_HOP.contains(&key) || key.as_str() == "keep-alive" {
                return Err(bad(format!("the header `{key}` is not a plugin's to set")));
            }
            // The host knows better.
            if key != header::CONTENT_LENGTH {
                map.append(key, value);
            }
        }
        Ok(Head {
            status,
            headers: map,
        })
    }
}

/// Takes a guest's stream, with backpressure: the guest waits while the client has not taken what is
/// there, and its stream is closed when the client is gone.
pub(crate) struct Sink {
    pieces: PollSender<Bytes>,
    /// Tells that the stream has ended.
    _done: oneshot::Sender<()>,
}

/// A sink, what comes out of it, and what resolves when it is dropped.
pub(crate) fn sink() -> (Sink, mpsc::Receiver<Bytes>, oneshot::Receiver<()>) {
    let (sender, pieces) = mpsc::channel(PIECES);
    let (done, ended) = oneshot::channel();
    (
        Sink {
            pieces: PollSender::new(sender),
            _done: done,
        },
        pieces,
        ended,
    )
}

impl<D> StreamConsumer<D> for Sink {
    type Item = u8;

    fn poll_consume(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        store: StoreContextMut<'_, D>,
        source: Source<'_, u8>,
        finish: bool,
    ) -> Poll<wasmtime::Result<StreamResult>> {
        match self.pieces.poll_reserve(context) {
            Poll::Pending if finish => return Poll::Ready(Ok(StreamResult::Cancelled)),
            polled => {
                if ready!(polled).is_err() {
                    return Poll::Ready(Ok(StreamResult::Dropped));
                }
            }
        }
        let mut direct = source.as_direct(store);
        let offered = direct.remaining();
        let count = offered.len().min(PIECE);
        if count > 0 {
            let piece = Bytes::copy_from_slice(&offered[..count]);
            direct.mark_read(count);
            if self.pieces.send_item(piece).is_err() {
                return Poll::Ready(Ok(StreamResult::Dropped));
            }
        }
        Poll::Ready(Ok(StreamResult::Completed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(status: u16, headers: &[(&str, &str)]) -> String {
        let headers: Vec<_> = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec()))
            .collect();
        match Head::new(status, &headers) {
            Ok(head) => format!("{} {:?}", head.status.as_u16(), head.headers),
            Err(Failure::BadAnswer(what)) => what,
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_answer_is_checked() {
        assert_eq!(
            refusal(200, &[("X-A", "1"), ("x-a", "2")]),
            "200 {\"x-a\": \"1\", \"x-a\": \"2\"}"
        );
        assert_eq!(refusal(200, &[("content-length", "7")]), "200 {}");
        for status in [0, 99, 100, 199, 600, 65535] {
            assert_eq!(
                refusal(status, &[]),
                format!("the status {status} is not between 200 and 599")
            );
        }
        assert_eq!(refusal(200, &[("a b", "")]), "`a b` is no name of a header");
        assert_eq!(
            refusal(200, &[("a", "x\r\ny")]),
            "the header `a` has a value that HTTP does not allow"
        );
        assert_eq!(
            refusal(200, &[("Connection", "x")]),
            "the header `connection` is not a plugin's to set"
        );
        assert_eq!(refusal(200, &[("a", "b"); 65]), "65 headers, more than 64");
        assert_eq!(
            refusal(200, &[("a", &"b".repeat(16 << 10))]),
            "16385 bytes of headers, more than 16384"
        );
    }
}
