//! One connection: HTTP/1.1 on a socket, until the client leaves, is too slow, or the API stops.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use http::header::CONNECTION;
use http::{HeaderValue, StatusCode};
use http_body::{Body as _, Frame, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::net::sockopt;
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::bounds::{BUFFER, HEAD_WITHIN, KERNEL_BUFFER, STREAM_UNREAD_FOR};
use crate::client_connection::ClientConnection;
use crate::listener::KeylessAccess;
use crate::message::Request;
use crate::places::{ConnectionSlot, RequestGuard};
use crate::socket::Socket;
use crate::unread::SocketBody;

/// Serves one connection. When `stopping` is cancelled, the current request is completed and no other is accepted.
pub(crate) async fn serve(
    app: App,
    stream: TcpStream,
    keyless: KeylessAccess,
    place: ConnectionSlot,
    stopping: CancellationToken,
) {
    let place = Arc::new(place);
    let prepared =
        prepare(&stream).and_then(|()| ClientConnection::new(&stream, keyless, place.clone()));
    let client = match prepared {
        Ok(client) => client,
        Err(error) => {
            tracing::debug!(%error, "failed to set up a connection");
            return;
        }
    };
    let streams = Arc::<AtomicBool>::default();
    let service = service_fn(|request: http::Request<hyper::body::Incoming>| {
        let (app, client, streams) = (&app, &client, &streams);
        let under_way = place.request();
        async move {
            let mut answer = app.answer_from(client, with_rest(request)).await;
            streams.store(answer.size_hint().exact().is_none(), Ordering::Relaxed);
            if answer.status() == StatusCode::UNAUTHORIZED {
                // Clients that guess keys, or flood, must reconnect each time.
                let close = HeaderValue::from_static("close");
                answer.headers_mut().insert(CONNECTION, close);
            }
            Ok::<_, Infallible>(answer.map(|body| AnswerBody {
                body,
                failure: None,
                _under_way: under_way,
            }))
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        // Not `pipeline_flush`: with it, a body that is always ready is buffered without limit, whether or not the
        // client reads it.
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(Socket::new(stream, streams.clone())), service);
    let until_stopped = async {
        let mut connection = pin!(connection);
        tokio::select! {
            ended = connection.as_mut() => ended,
            () = stopping.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        }
    };
    let ended = tokio::select! {
        ended = until_stopped => ended,
        () = place.displaced() => {
            tracing::debug!("dropped a connection, to make room for another or because the API ends");
            return;
        }
    };
    if let Err(error) = ended {
        // Clients that leave or send something other than HTTP; nothing that we could improve.
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Wraps the request's body so that none of it is left unread.
fn with_rest(request: http::Request<hyper::body::Incoming>) -> Request {
    let (head, body) = request.into_parts();
    let body = if hyper::body::Body::is_end_stream(&body) {
        Body::empty()
    } else {
        Body::new(SocketBody::new(body, &head.headers))
    };
    Request::from_parts(head, body)
}

fn prepare(stream: &TcpStream) -> std::io::Result<()> {
    // Answers are small and written as a whole: waiting to fill a packet would only delay them.
    stream.set_nodelay(true)?;
    sockopt::set_socket_send_buffer_size(stream, KERNEL_BUFFER)?;
    sockopt::set_socket_keepalive(stream, true)?;
    let unread = u32::try_from(STREAM_UNREAD_FOR.as_millis()).unwrap_or(u32::MAX);
    sockopt::set_tcp_user_timeout(stream, unread)?;
    Ok(())
}

/// The body of an answer: its request counts as in progress until all of it is written.
///
/// hyper drops a connection as soon as its answer's body fails, together with unsent data: if a stream failed early,
/// the client would not even receive the head. So a failure is delayed once, and hyper sends what it has.
struct AnswerBody {
    body: Body,
    failure: Option<axum::Error>,
    _under_way: RequestGuard,
}

impl http_body::Body for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Some(failure) = self.failure.take() {
            return Poll::Ready(Some(Err(failure)));
        }
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(Some(Err(failure))) => {
                self.failure = Some(failure);
                context.waker().wake_by_ref();
                Poll::Pending
            }
            polled => polled,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.failure.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;
    use crate::places::Places;

    #[tokio::test]
    async fn an_answer_that_fails_is_sent_as_far_as_it_was_written() {
        let places = Arc::<Places>::default();
        let slot = places.take(IpAddr::V4(Ipv4Addr::LOCALHOST)).unwrap();
        let slot = Arc::new(slot);
        let service = service_fn(|_| {
            let pieces = [Ok("begun"), Err(std::io::Error::other("the source failed"))];
            let answer = AnswerBody {
                body: Body::from_stream(futures::stream::iter(pieces)),
                failure: None,
                _under_way: slot.request(),
            };
            async { Ok::<_, Infallible>(http::Response::new(answer)) }
        });
        let (mut client, server) = tokio::io::duplex(BUFFER);
        client.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        let served = http1::Builder::new().serve_connection(TokioIo::new(server), service);
        assert!(served.await.is_err(), "the answer is not whole");
        let mut sent = String::new();
        client.read_to_string(&mut sent).await.unwrap();
        assert!(sent.starts_with("HTTP/1.1 200 OK\r\n"), "{sent:?}");
        assert!(sent.ends_with("5\r\nbegun\r\n"), "{sent:?}");
    }
}
