//! Requests that a component sends as `wasi:http` does: each goes to the host complete, as a request of `wit/http.wit`,
//! and the host checks it against the policy and sends it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HOST};
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt as _, Full, Limited};
use plugin_protocol::{
    HTTP_BODY, HTTP_HEADER_BYTES, HTTP_HEADERS, HTTP_URL, HttpError, HttpRequest, HttpSend,
    LogLevel,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpHooks};

use crate::instance_host::InstanceHost;
use crate::instance_log::LogBudget;

/// How many requests of one instance can be under way at a time, or answered with a body that it still holds.
const AT_ONCE: usize = 4;
/// The largest write to a body, in bytes; two writes can wait to be read.
const PIECE: usize = 32 << 10;

/// The work that `wasmtime_wasi_http` runs once a response is there: nothing is left to do then.
type IoFuture = Box<dyn Future<Output = Result<(), Error>> + Send>;

/// Sends the requests of one instance.
pub(crate) struct OutgoingRequests {
    /// The host for the call that the instance serves.
    pub(crate) host: InstanceHost,
    log: Arc<LogBudget>,
    places: Arc<Semaphore>,
}

impl OutgoingRequests {
    pub(crate) fn new(host: InstanceHost, log: Arc<LogBudget>) -> OutgoingRequests {
        OutgoingRequests {
            host,
            log,
            places: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }
}

impl WasiHttpHooks for OutgoingRequests {
    fn send_request(
        &mut self,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
        _: IoFuture,
    ) -> Box<dyn Future<Output = Result<(Response<WasiBody>, IoFuture), Error>> + Send> {
        let place = Arc::clone(&self.places).try_acquire_owned();
        let (host, log) = (self.host.clone(), Arc::clone(&self.log));
        Box::new(async move {
            let place = place.map_err(|_| Error::ConnectionLimitReached)?;
            let sent = send(host, &log, request, place);
            // The host uses one time limit for connecting and waiting, so the component's two are combined as well.
            let times =
                options.map(|options| [options.connect_timeout, options.first_byte_timeout]);
            let time = times.into_iter().flatten().flatten().max();
            let response = match time {
                Some(time) => tokio::time::timeout(time, sent)
                    .await
                    .unwrap_or(Err(Error::ConnectionReadTimeout)),
                None => sent.await,
            };
            Ok((response?, Box::new(std::future::ready(Ok(()))) as IoFuture))
        })
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        PIECE
    }
}

async fn send(
    host: InstanceHost,
    log: &LogBudget,
    request: Request<WasiBody>,
    place: OwnedSemaphorePermit,
) -> Result<Response<WasiBody>, Error> {
    let request = whole(request).await?;
    // The interface was only linked because it is granted. Any other reason for no answer ends the call itself.
    let answer = host.ask(HttpSend { request }).await;
    let answer = answer.map_err(|_| Error::HttpRequestDenied)?;
    let answer = answer.map_err(|error| {
        // A `wasi:http` code has no room for the text.
        log.write(LogLevel::Warn, &format!("wasi:http: {error}"));
        match error {
            HttpError::NotGranted(_) => Error::HttpRequestDenied,
            HttpError::Invalid(why) => Error::InternalError(Some(why)),
            HttpError::Unreachable(_) => Error::DestinationUnavailable,
            HttpError::TooLarge(_) => Error::HttpResponseBodySize(None),
        }
    })?;
    let mut response = Response::builder().status(answer.status);
    for (name, value) in answer.headers {
        response = response.header(name, value);
    }
    let body = AnswerBody {
        body: Full::from(answer.body),
        _place: place,
    };
    response
        .body(body.map_err(Error::from).boxed_unsync())
        .map_err(|error| Error::InternalError(Some(error.to_string())))
}

/// Converts the request into one piece, as the host expects it.
async fn whole(request: Request<WasiBody>) -> Result<HttpRequest, Error> {
    let (parts, body) = request.into_parts();
    let url = parts.uri.to_string();
    if url.len() > HTTP_URL {
        return Err(Error::HttpRequestUriTooLong);
    }
    // The host writes these itself.
    let fields = parts.headers.iter();
    let fields = fields.filter(|(name, _)| ![HOST, CONTENT_LENGTH].contains(name));
    let headers: Vec<_> = fields
        .map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec()))
        .collect();
    let lengths = headers.iter().map(|(name, value)| name.len() + value.len());
    if headers.len() > HTTP_HEADERS || lengths.sum::<usize>() > HTTP_HEADER_BYTES {
        return Err(Error::HttpRequestHeaderSectionSize(None));
    }
    let body = Limited::new(body, HTTP_BODY).collect().await;
    // Either it is too long, or the component abandoned it.
    let body = body.map_err(|_| Error::HttpRequestBodySize(None))?;
    Ok(HttpRequest {
        method: parts.method.to_string(),
        url,
        headers,
        body: body.to_bytes().into(),
    })
}

/// The body of an answer, which occupies a place for as long as the instance holds it.
struct AnswerBody {
    body: Full<Bytes>,
    _place: OwnedSemaphorePermit,
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
