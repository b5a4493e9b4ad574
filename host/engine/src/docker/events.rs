//! The engine's messages while it works, translated into events that one of our objects may have
//! changed.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::BytesMut;
use futures::stream::{self, BoxStream, StreamExt};
use http::Method;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use model::ContainerId;
use serde::Deserialize;

use super::Filters;
use super::connect::Connection;
use crate::{EngineError, EngineEvent, Ownership};

/// The longest message that is read, in bytes. Labels are in them.
const MAX_MESSAGE: usize = 1 << 20;

/// Changes of a container's state. Other messages about containers (exec, attach) change nothing that is observed.
/// observed.
const CONTAINER_ACTIONS: [&str; 10] = [
    "create",
    "start",
    "die",
    "stop",
    "pause",
    "unpause",
    "rename",
    "destroy",
    "restart",
    "health_status",
];
/// Of other objects, only the actions that may remove something of ours: their messages carry no
/// labels, so those of all owners arrive.
const OTHER_ACTIONS: [&str; 3] = ["destroy", "delete", "untag"];

pub(super) async fn follow_owned(
    connection: &Arc<Connection>,
    ownership: &Ownership,
) -> Result<BoxStream<'static, EngineEvent>, EngineError> {
    let ours = filters(
        &["container"],
        &CONTAINER_ACTIONS,
        Some(("label", ownership.labels())),
    );
    let others = filters(&["image", "network", "volume"], &OTHER_ACTIONS, None);
    let containers = subscribe(connection, &ours).await?;
    let rest = subscribe(connection, &others).await?;
    let containers = containers.map(|message| match message.actor.id.parse() {
        Ok(id) => Some(EngineEvent::Container(id)),
        Err(_) => Some(EngineEvent::Other),
    });
    let rest = rest.map(|_| Some(EngineEvent::Other));
    // Each of them ends when the engine goes away, and then so does the combined stream.
    let whole = stream::select(
        containers.chain(stream::iter([None])),
        rest.chain(stream::iter([None])),
    );
    Ok(whole
        .take_while(|event| futures::future::ready(event.is_some()))
        .filter_map(futures::future::ready)
        .boxed())
}

/// Returns the events of one container's starts and its removal.
pub(super) async fn follow_container(
    connection: &Arc<Connection>,
    id: &ContainerId,
) -> Result<BoxStream<'static, Message>, EngineError> {
    let one = Some(("container", vec![id.to_string()]));
    subscribe(
        connection,
        &filters(&["container"], &["start", "destroy"], one),
    )
    .await
}

fn filters(types: &[&str], actions: &[&str], more: Option<(&str, Vec<String>)>) -> Filters {
    let owned = |words: &[&str]| words.iter().map(ToString::to_string).collect();
    let mut filters = HashMap::from([
        ("type".to_owned(), owned(types)),
        ("event".to_owned(), owned(actions)),
    ]);
    filters.extend(more.map(|(key, values)| (key.to_owned(), values)));
    filters
}

/// The fields of a message that are used.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message {
    #[serde(rename = "Action")]
    pub(super) action: String,
    #[serde(rename = "Actor")]
    actor: Actor,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Actor {
    #[serde(rename = "ID")]
    id: String,
}

/// Subscribes to messages from now on. The engine answers before it has subscribed itself, so the
/// request covers events since this moment.
async fn subscribe(
    connection: &Arc<Connection>,
    filters: &Filters,
) -> Result<BoxStream<'static, Message>, EngineError> {
    let failed = |error| connection.failed("follow the engine's events", error);
    let filters = serde_json::to_string(filters).map_err(|error| failed(error.into()))?;
    let query = form_urlencoded::Serializer::new(String::new())
        .append_pair("since", &now())
        .append_pair("filters", &filters)
        .finish();
    let path = format!("/events?{query}");
    let version = connection.client().await?.version;
    let response = connection
        .send(version, Method::GET, &path, None)
        .await
        .map_err(failed)?;
    let lines = Lines {
        body: response.into_body(),
        buffer: BytesMut::new(),
    };
    Ok(stream::unfold(lines, |mut lines| async {
        let line = lines.next().await?;
        // A message that we cannot read still counts as an event.
        Some((serde_json::from_slice(&line).unwrap_or_default(), lines))
    })
    .boxed())
}

/// Returns the seconds since the epoch with nine decimals, the engine's format for points in time.
fn now() -> String {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    format!("{}.{:09}", now.as_secs(), now.subsec_nanos())
}

struct Lines {
    body: Incoming,
    buffer: BytesMut,
}

impl Lines {
    /// Returns `None` at the end, whatever its reason, and at a message that does not end.
    async fn next(&mut self) -> Option<BytesMut> {
        loop {
            if let Some(end) = self.buffer.iter().position(|&byte| byte == b'\n') {
                let line = self.buffer.split_to(end + 1);
                return Some(line);
            }
            if self.buffer.len() > MAX_MESSAGE {
                return None;
            }
            let frame = self.body.frame().await?.ok()?;
            if let Some(data) = frame.data_ref() {
                self.buffer.extend_from_slice(data);
            }
        }
    }
}
