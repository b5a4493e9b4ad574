//! `GET /v3/events`: what happens on the device, as server-sent events, for as long as the reader stays.

use axum::body::Body;
use device_types::event::EventType;
use futures::StreamExt;
use http::header::{CACHE_CONTROL, HeaderValue};
use http::{Method, StatusCode};

use crate::answer::{self, Failure};
use crate::app::Api;
use crate::call::Call;
use crate::events::{self, EventData, Filter, MAX_READERS, Position};
use crate::operation::{Answer, Operation, Parameter, schema};
use crate::routes::{Handler, Outcome, Route};

pub(crate) const ROUTES: &[Route] = &[Route {
    method: Method::GET,
    path: "/v3/events",
    summary: "what happens on the device, as server-sent events",
    operation: Operation::answering(&[
        Answer::events(
            "the events from now on, or since the last one",
            schema::<EventData>,
        ),
        Answer::failed(StatusCode::BAD_REQUEST, "`types` contains an unknown type"),
        Answer::failed(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many clients are already reading events",
        ),
    ])
    .asked_with(&[Parameter {
        name: "types",
        about: "the types of events to send, separated by commas; by default all",
    }]),
    handler: Handler::Now(events),
}];

/// The longest list of types, in bytes: more than all of them take.
const MAX_TYPES: usize = 256;

/// Ends when the reader leaves or the API stops.
fn events(api: &Api, call: &Call) -> Outcome {
    let filter = Filter {
        scope: call.caller.scope,
        types: types(call)?,
    };
    let events = api.device.events().clone();
    let from = match call.request.headers().get("last-event-id") {
        // What cannot be read is of somebody else's stream.
        Some(last) => Position::after(&events, last.to_str().unwrap_or_default()),
        None => Position::Now,
    };
    let Some(place) = events.admit() else {
        return Err(Failure::Refused(
            StatusCode::SERVICE_UNAVAILABLE,
            format!(
                "{MAX_READERS} clients are already reading events: try again when one has disconnected"
            ),
        ));
    };
    let pieces = events::read(events, from, filter, place)
        .take_until(api.stopping().clone().cancelled_owned());
    let mut response = answer::event_stream(Body::from_stream(pieces));
    let no_cache = HeaderValue::from_static("no-cache");
    response.headers_mut().insert(CACHE_CONTROL, no_cache);
    Ok(response)
}

/// The types that a reader asks for; all if it names none.
fn types(call: &Call) -> Result<Option<Vec<EventType>>, Failure> {
    let Some(wanted) = call.query("types") else {
        return Ok(None);
    };
    let known = EventType::ALL;
    if wanted.len() > MAX_TYPES {
        return Err(Failure::invalid(format!(
            "`types` is longer than {MAX_TYPES} bytes"
        )));
    }
    let types = wanted.split(',').map(|name| {
        let found = known.iter().copied().find(|kind| kind.name() == name);
        found.ok_or_else(|| {
            let names: Vec<_> = known.iter().map(|kind| kind.name()).collect();
            Failure::invalid(format!(
                "`types` contains `{name}`, which is not a type of event: use {}",
                names.join(", ")
            ))
        })
    });
    types.collect::<Result<_, _>>().map(Some)
}
