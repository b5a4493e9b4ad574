//! `wit/api.wit`: requests to the device's own API.

use plugin_protocol::{ApiRequest, ApiResponse, ApiSend, HTTP_BODY, HTTP_URL};

use crate::bindings::platform::supervisor::api::{self, ApiError, Request, Response};
use crate::guest::{Answer, Guest, GuestAccess, GuestData, host};

impl api::Host for &mut Guest {}

impl api::HostWithStore<Guest> for GuestData {
    async fn send(access: &GuestAccess, request: Request) -> Answer<Response, ApiError> {
        // A longer request does not fit into a message to the host.
        if let Some(why) = too_long(&request) {
            return Ok(Err(ApiError::Invalid(why)));
        }
        let request = request.into();
        let answer = host(access).try_ask(ApiSend { request }).await?;
        Ok(answer.map(Into::into))
    }
}

fn too_long(request: &Request) -> Option<String> {
    let content_type = request.content_type.as_ref().map_or(0, String::len);
    let parts = [
        ("method", request.method.len(), 16),
        ("path", request.path.len(), HTTP_URL),
        ("content-type", content_type, HTTP_URL),
        ("body", request.body.len(), HTTP_BODY),
    ];
    let (part, length, most) = parts.into_iter().find(|(_, length, most)| length > most)?;
    Some(format!(
        "`{part}` has {length} bytes, but at most {most} are allowed"
    ))
}

mirror! { one way struct Request, ApiRequest { method, path, content_type, body } }
mirror! { one way struct ApiResponse, Response { status, content_type, body } }
mirror! { one way enum plugin_protocol::ApiError, ApiError { NotGranted(why), Invalid(why), Unavailable(why), TooLarge(why) } }
