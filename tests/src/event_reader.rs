//! A reader of `GET /v3/events`.

use std::collections::VecDeque;

use futures::StreamExt;
use futures::stream::BoxStream;
use serde_json::Value;

use crate::supervisor::Supervisor;
use crate::until::DEADLINE;

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Missing in a `gap` event.
    pub id: Option<String>,
    pub kind: String,
    /// The event's data.
    pub data: Value,
}

/// Reads event by event.
pub struct EventReader {
    body: BoxStream<'static, reqwest::Result<bytes::Bytes>>,
    partial: String,
    events: VecDeque<Event>,
    greeted: bool,
}

impl Supervisor {
    /// Opens the stream of events from now on.
    ///
    /// # Panics
    /// If it is refused.
    pub async fn read_events(&self) -> EventReader {
        self.read_events_after(None, "").await
    }

    /// Opens the stream of events after `last`, with this query.
    ///
    /// # Panics
    /// If it is refused.
    pub async fn read_events_after(&self, last: Option<&str>, query: &str) -> EventReader {
        // No time limit: the test decides how long it reads.
        let mut request = self
            .client()
            .get(format!("{}/v3/events{query}", self.base()))
            .bearer_auth(self.key());
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = request.send().await.expect("an answer");
        assert_eq!(response.status(), 200);
        let mut reader = EventReader {
            body: response.bytes_stream().boxed(),
            partial: String::new(),
            events: VecDeque::new(),
            greeted: false,
        };
        // Later events are not missed.
        while !reader.greeted {
            assert!(reader.read().await, "the stream ended before it greeted");
        }
        reader
    }
}

impl EventReader {
    /// Returns the next event; `None` once the stream has ended.
    ///
    /// # Panics
    /// If none comes before the [`DEADLINE`].
    pub async fn next(&mut self) -> Option<Event> {
        let reading = async {
            while self.events.is_empty() && self.read().await {}
            self.events.pop_front()
        };
        match tokio::time::timeout(DEADLINE, reading).await {
            Ok(event) => event,
            Err(_) => panic!("no event within {DEADLINE:?}"),
        }
    }

    /// Reads until an event of this kind satisfies `holds`; returns it after all earlier ones.
    ///
    /// # Panics
    /// If the stream ends first.
    pub async fn until(&mut self, kind: &str, holds: impl Fn(&Value) -> bool) -> Vec<Event> {
        let mut seen: Vec<Event> = Vec::new();
        loop {
            let Some(event) = self.next().await else {
                panic!("the stream ended without the event `{kind}`: {seen:#?}");
            };
            let found = event.kind == kind && holds(&event.data);
            seen.push(event);
            if found {
                return seen;
            }
        }
    }

    /// Reads the next piece; returns `false` once the stream has ended.
    async fn read(&mut self) -> bool {
        let Some(Ok(piece)) = self.body.next().await else {
            return false;
        };
        self.partial.push_str(&String::from_utf8_lossy(&piece));
        while let Some(end) = self.partial.find("\n\n") {
            let frame: String = self.partial.drain(..end + 2).collect();
            self.greeted |= frame.starts_with("retry:");
            self.events.extend(parse(&frame));
        }
        true
    }
}

/// Parses an event, unless it is a comment or an instruction for the client's library.
fn parse(frame: &str) -> Option<Event> {
    let field = |name: &str| frame.lines().find_map(|line| line.strip_prefix(name));
    let kind = field("event: ")?;
    let body: Value = match serde_json::from_str(field("data: ")?) {
        Ok(body) => body,
        Err(error) => panic!("{error}: {frame}"),
    };
    assert_eq!(body["type"], kind, "{frame}");
    assert_eq!(body["id"].as_str(), field("id: "), "{frame}");
    assert!(
        body["time"].as_str().is_some_and(|t| t.ends_with('Z')),
        "{frame}"
    );
    Some(Event {
        id: field("id: ").map(str::to_owned),
        kind: kind.to_owned(),
        data: body["data"].clone(),
    })
}
