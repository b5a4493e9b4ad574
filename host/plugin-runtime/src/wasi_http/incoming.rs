//! One request to a component that answers as `wasi:http` does.

use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::task::Poll;

use bytes::Bytes;
use http::{Method, Request, Uri};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty, Full};
use plugin_protocol::text::{LONGEST, cut, one_line};
use plugin_protocol::{
    AnswerHead, Failure, GuestError, GuestRequest, Outcome, RequestBody, RequestHead,
};
use tokio::sync::oneshot;
use wasmtime::component::Resource;
use wasmtime_wasi_http::p2::bindings::exports::wasi::http::incoming_handler;
use wasmtime_wasi_http::p2::bindings::http::types::{ErrorCode, Scheme};
use wasmtime_wasi_http::p2::body::HyperOutgoingBody;
use wasmtime_wasi_http::p2::types::{HostIncomingRequest, HostResponseOutparam};
use wasmtime_wasi_http::{Error, WasiHttpView as _};

use super::response_body::ResponseBody;
use crate::answer::{AnswerPieces, GuestEnd, StreamedAnswer, StreamedAnswerSlot};
use crate::failure;
use crate::instance::Instance;

/// The authority of a request that has none, or one that a component could not parse.
const DEFAULT_AUTHORITY: &str = "localhost";

/// The answer that a component sets.
type Response = Result<http::Response<HyperOutgoingBody>, ErrorCode>;

/// Calls the component's handler. Once its answer begins, it is in `begun`, and the component continues until the body
/// is complete.
pub(crate) async fn run(
    mut instance: Instance,
    handler: incoming_handler::Guest,
    request: GuestRequest,
    begun: StreamedAnswerSlot,
) -> (Instance, GuestEnd) {
    let (sender, mut response) = oneshot::channel();
    let (request, place) = match resources(&mut instance, request, sender) {
        Ok(resources) => resources,
        Err(failure) => return (instance, Err(failure)),
    };
    let returned = {
        let mut call = pin!(handler.call_handle(&mut instance.store, request, place));
        let mut has_answered = false;
        poll_fn(|context| {
            let polled = call.as_mut().poll(context);
            if !has_answered && let Ok(response) = response.try_recv() {
                has_answered = true;
                match start_of(response) {
                    ResponseStart::Stream(stream) => *begun.lock() = Some(stream),
                    // There is nothing to wait for: nothing that the component does after that reaches anyone.
                    ResponseStart::End(end) => return Poll::Ready(Ok(end)),
                }
            }
            let end = if has_answered {
                Ok(None)
            } else {
                let what = "it returned without an answer (`response-outparam.set`)";
                Err(Failure::BadAnswer(what.to_owned()))
            };
            polled.map_ok(|()| end)
        })
        .await
    };
    let end = returned.unwrap_or_else(|error| {
        let exceeded = instance.meter.exceeded();
        Err(failure::classify(&error, instance.store.data(), exceeded))
    });
    (instance, end)
}

/// Creates the handler's arguments: the request, and the place for the answer.
fn resources(
    instance: &mut Instance,
    request: GuestRequest,
    sender: oneshot::Sender<Response>,
) -> Result<
    (
        Resource<HostIncomingRequest>,
        Resource<HostResponseOutparam>,
    ),
    Failure,
> {
    let not_ready = |error: wasmtime::Error| Failure::NotReady(format!("{error:#}"));
    let base_path = instance.store.data().blueprint.base_path.as_deref();
    let request = incoming(request, base_path)
        .map_err(|error| Failure::NotReady(format!("its request cannot be passed on: {error}")))?;
    let mut http = instance.store.data_mut().http();
    let place = http.new_response_outparam(sender).map_err(not_ready)?;
    let request = http.new_incoming_request(Scheme::Http, request);
    Ok((request.map_err(not_ready)?, place))
}

/// Creates the request for `wasi:http`: the key is already removed, and the component has to find the values of its
/// route's names in the path itself.
fn incoming(
    request: GuestRequest,
    base_path: Option<&str>,
) -> Result<Request<UnsyncBoxBody<Bytes, Error>>, http::Error> {
    let GuestRequest { head, body } = request;
    let RequestHead {
        method,
        path,
        query,
        headers,
        ..
    } = head;
    let host = headers.iter().find(|(name, _)| name == "host");
    let host = host.and_then(|(_, value)| std::str::from_utf8(value).ok());
    let host = host.filter(|host| host.parse::<http::uri::Authority>().is_ok());
    let path = base_path.map_or(path.as_str(), |base| below(base, &path));
    let path_and_query = match query.as_str() {
        "" => path.to_owned(),
        query => format!("{path}?{query}"),
    };
    let uri = Uri::builder()
        .scheme("http")
        .authority(host.unwrap_or(DEFAULT_AUTHORITY))
        .path_and_query(path_and_query)
        .build()?;
    let mut request = Request::builder()
        .method(Method::from_bytes(method.as_bytes())?)
        .uri(uri);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let body = match body {
        RequestBody::Empty => Empty::new().map_err(Error::from).boxed_unsync(),
        RequestBody::Whole(bytes) => Full::from(bytes).map_err(Error::from).boxed_unsync(),
        RequestBody::Stream(stream) => stream
            .map_err(|reason| Error::InternalError(Some(reason)))
            .boxed_unsync(),
    };
    request.body(body)
}

/// Returns the rest of a path after its prefix `base`, which may be spelt differently there: `/` if there is no rest.
fn below<'a>(base: &str, path: &'a str) -> &'a str {
    let segments = base.matches('/').count();
    let rest = path.match_indices('/').nth(segments);
    rest.and_then(|(at, _)| path.get(at..)).unwrap_or("/")
}

/// The meaning of a component's response.
enum ResponseStart {
    /// The head of the answer, and the source of its body.
    Stream(StreamedAnswer),
    /// There is no answer: the call ends.
    End(GuestEnd),
}

fn start_of(response: Response) -> ResponseStart {
    let response = match response {
        Ok(response) => response,
        Err(error) => {
            let error = Outcome::Error(own_error(error));
            return ResponseStart::End(Ok(Some(error)));
        }
    };
    let (parts, body) = response.into_parts();
    match AnswerHead::from_http(parts.status, &parts.headers) {
        Ok(head) => ResponseStart::Stream((head, AnswerPieces::WasiHttp(ResponseBody(body)))),
        Err(failure) => ResponseStart::End(Err(failure)),
    }
}

/// Converts an error that the component returns instead of a response.
fn own_error(error: ErrorCode) -> GuestError {
    let message = match error {
        ErrorCode::InternalError(Some(message)) => cut(message),
        error => one_line(&error.to_string(), LONGEST),
    };
    GuestError {
        status: http::StatusCode::INTERNAL_SERVER_ERROR.as_u16(),
        code: "wasi-http".to_owned(),
        message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_sees_what_is_below_its_base_path() {
        for (path, expected) in [
            ("/v3/shop", "/"),
            ("/V3/Shop/", "/"),
            ("/v3/shop/items", "/items"),
            ("/v3/sh%6fp/items/5/", "/items/5/"),
        ] {
            assert_eq!(below("/v3/shop", path), expected, "{path}");
        }
    }
}
