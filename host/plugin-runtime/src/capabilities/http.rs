//! `wit/http.wit`: requests to the hosts that the policy names.

use plugin_protocol::{
    HTTP_BODY, HTTP_HEADER_BYTES, HTTP_HEADERS, HTTP_URL, HttpRequest, HttpResponse, HttpSend,
};

use crate::bindings::platform::supervisor::http::{self, HttpError, Request, Response};
use crate::guest::{Answer, Guest, GuestAccess, GuestData, host};

impl http::Host for &mut Guest {}

impl http::HostWithStore<Guest> for GuestData {
    async fn send(access: &GuestAccess, request: Request) -> Answer<Response, HttpError> {
        // A longer request does not fit into a message to the host.
        if let Some(why) = too_long(&request) {
            return Ok(Err(HttpError::Invalid(why)));
        }
        let request = request.into();
        let answer = host(access).try_ask(HttpSend { request }).await?;
        Ok(answer.map(Into::into))
    }
}

fn too_long(request: &Request) -> Option<String> {
    let fields = request.headers.iter();
    let fields = fields.map(|(name, value)| name.len() + value.len());
    let parts = [
        ("method", "bytes", request.method.len(), 16),
        ("url", "bytes", request.url.len(), HTTP_URL),
        ("headers", "fields", request.headers.len(), HTTP_HEADERS),
        ("headers", "bytes", fields.sum(), HTTP_HEADER_BYTES),
        ("body", "bytes", request.body.len(), HTTP_BODY),
    ];
    let (part, unit, length, most) = parts
        .into_iter()
        .find(|(_, _, length, most)| length > most)?;
    Some(format!(
        "`{part}` has {length} {unit}, but at most {most} are allowed"
    ))
}

mirror! { one way struct Request, HttpRequest { method, url, headers, body } }
mirror! { one way struct HttpResponse, Response { status, headers, body } }
mirror! { one way enum plugin_protocol::HttpError, HttpError { NotGranted(why), Invalid(why), Unreachable(why), TooLarge(why) } }
