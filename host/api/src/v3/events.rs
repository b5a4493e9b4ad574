//! `GET /v3/events`: the events on the device, as server-sent events, for as long as the reader stays.

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::response::IntoResponse;
use device_types::event::EventType;
use futures::StreamExt;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue};
use strum::VariantNames;

use crate::answer::Failure;
use crate::caller::Caller;
use crate::events::{self, EventData, Filter, MAX_READERS, Position};
use crate::extract::query_parameter;
use crate::operation::{Answer, Content, schema};
use crate::route::Route;
use crate::state::Api;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v3/events", events)
            .summary("what happens on the device, as server-sent events")
            .with_query(&[(
                "types",
                "the types of events to send, separated by commas; by default all",
            )])
            .answering([
                Answer::new(
                    200,
                    "the events from now on, or since the last one",
                    Content::Events(schema::<EventData>),
                ),
                Answer::failed(400, "`types` contains an unknown type"),
                Answer::failed(503, "too many clients are already reading events"),
            ]),
    ]
}

const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream; charset=utf-8");
/// The maximum length of the list of types, in bytes: more than all of them need.
const MAX_TYPES: usize = 256;

/// Streams events until the reader leaves or the API stops.
async fn events(
    State(api): State<Api>,
    caller: Caller,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<impl IntoResponse, Failure> {
    let filter = Filter {
        scope: caller.scope,
        types: query_parameter(query.as_deref(), "types")
            .map(|list| event_types(&list))
            .transpose()?,
    };
    let events = api.device.events().clone();
    let from = match headers.get("last-event-id") {
        // An unreadable id belongs to another server's stream.
        Some(last) => Position::after(&events, last.to_str().unwrap_or_default()),
        None => Position::Now,
    };
    let Some(place) = events.admit() else {
        return Err(Failure::unavailable(format!(
            "{MAX_READERS} clients are already reading events: try again when one has disconnected"
        )));
    };
    let pieces = events::read(events, from, filter, place)
        .take_until(api.stopping.clone().cancelled_owned());
    let headers = [
        (CONTENT_TYPE, EVENT_STREAM),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    Ok((headers, Body::from_stream(pieces)))
}

/// Parses a comma-separated list of event types.
fn event_types(list: &str) -> Result<Vec<EventType>, Failure> {
    if list.len() > MAX_TYPES {
        return Err(Failure::invalid(format!(
            "`types` is longer than {MAX_TYPES} bytes"
        )));
    }
    let event_type = |name: &str| {
        name.parse().map_err(|_| {
            Failure::invalid(format!(
                "`types` contains `{name}`, which is not a type of event: use {}",
                EventType::VARIANTS.join(", ")
            ))
        })
    };
    list.split(',').map(event_type).collect()
}
