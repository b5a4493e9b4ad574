//! The ring without a socket: what readers receive, and what it costs them to be late.

use bytes::Bytes;
use device_types::event::{Download, PluginFault};
use futures::StreamExt;
use futures::stream::BoxStream;
use model::AppId;
use serde_json::{Value, json};

use super::*;

fn fault(number: usize) -> Event {
    Event::PluginFault(PluginFault {
        plugin: "p".into(),
        message: number.to_string(),
    })
}

fn events_of(app: u64) -> Event {
    Event::Download(Download {
        app_id: AppId(app),
        service: "web".parse().unwrap(),
        image: "web:1".parse().unwrap(),
        progress: 7,
    })
}

type Pieces = BoxStream<'static, Result<Bytes, std::convert::Infallible>>;

fn reader(
    events: &Events,
    from: Position,
    scope: KeyScope,
    types: Option<Vec<EventType>>,
) -> Pieces {
    let place = events.admit().unwrap();
    read(events.clone(), from, Filter { scope, types }, place).boxed()
}

/// Returns the events of the next pieces, as type and data, until there are `count`.
async fn next(pieces: &mut Pieces, count: usize) -> Vec<(String, Value)> {
    let mut messages = Vec::new();
    while messages.len() < count {
        let piece = pieces.next().await.unwrap().unwrap();
        let text = String::from_utf8(piece.to_vec()).unwrap();
        for frame in text.split_terminator("\n\n") {
            let field = |name: &str| {
                let line = frame.lines().find_map(|line| line.strip_prefix(name));
                line.map(str::to_owned)
            };
            let Some(data) = field("data: ") else {
                continue;
            };
            let data: Value = serde_json::from_str(&data).unwrap();
            let kind = field("event: ").unwrap();
            assert_eq!(data["type"], kind.as_str());
            assert_eq!(field("id: ").as_deref(), data["id"].as_str());
            assert!(data["time"].as_str().unwrap().ends_with('Z'), "{data}");
            messages.push((kind, data["data"].clone()));
        }
    }
    messages
}

fn numbers(messages: &[(String, Value)]) -> Vec<usize> {
    let numbers = messages.iter().map(|(_, data)| data["message"].as_str());
    numbers.map(|n| n.unwrap().parse().unwrap()).collect()
}

#[tokio::test]
async fn a_reader_gets_what_happens_from_when_it_came_in_order() {
    let events = Events::default();
    events.publish(Audience::Everyone, fault(1));
    let mut pieces = reader(&events, Position::Now, KeyScope::All, None);
    for number in 2..5 {
        events.publish(Audience::Everyone, fault(number));
    }
    assert_eq!(numbers(&next(&mut pieces, 3).await), [2, 3, 4]);
    events.publish(Audience::Everyone, fault(5));
    assert_eq!(numbers(&next(&mut pieces, 1).await), [5]);
}

#[tokio::test]
async fn a_reader_that_comes_back_goes_on_where_it_was() {
    let events = Events::default();
    for number in 1..=5 {
        events.publish(Audience::Everyone, fault(number));
    }
    let epoch = events.0.epoch;
    let last = Position::after(&events, &format!("{epoch}-3"));
    assert_eq!(last, Position::After(3));
    let mut pieces = reader(&events, last, KeyScope::All, None);
    assert_eq!(numbers(&next(&mut pieces, 2).await), [4, 5]);
    // From another run, from the future, or not an id at all.
    for strange in [
        &format!("{}-3", epoch - 1),
        &format!("{epoch}-6"),
        "3",
        "-",
        "",
        "äöü",
        "1-18446744073709551616",
    ] {
        assert_eq!(
            Position::after(&events, strange),
            Position::Elsewhere,
            "{strange}"
        );
    }
    drop(pieces);
    let mut pieces = reader(&events, Position::Elsewhere, KeyScope::All, None);
    let messages = next(&mut pieces, 6).await;
    assert_eq!(messages[0], ("gap".into(), json!({"missed": null})));
    assert_eq!(numbers(&messages[1..]), [1, 2, 3, 4, 5]);
}

#[tokio::test]
async fn a_slow_reader_receives_the_number_of_events_that_it_missed() {
    let events = Events::default();
    let mut pieces = reader(&events, Position::Now, KeyScope::All, None);
    for number in 1..=MAX_EVENTS + 10 {
        events.publish(Audience::Everyone, fault(number));
    }
    let messages = next(&mut pieces, 3).await;
    assert_eq!(messages[0], ("gap".into(), json!({"missed": 10})));
    assert_eq!(numbers(&messages[1..3]), [11, 12]);
    assert!(events.content().events.len() <= MAX_EVENTS);
}

#[tokio::test]
async fn the_ring_is_bounded_in_bytes_and_so_are_messages() {
    let events = Events::default();
    let long = Event::PluginFault(PluginFault {
        plugin: "p".into(),
        message: "ä".repeat(2 << 20),
    });
    let mut pieces = reader(&events, Position::Now, KeyScope::All, None);
    events.publish(Audience::Everyone, long);
    let (bytes, sum): (usize, usize) = {
        let content = events.content();
        let frames = content.events.iter().map(|event| event.frame.len());
        (content.bytes, frames.sum())
    };
    assert!(bytes < 2048, "{bytes}");
    assert_eq!(bytes, sum);
    let messages = next(&mut pieces, 1).await;
    assert!(messages[0].1["message"].as_str().unwrap().ends_with('…'));
}

#[tokio::test]
async fn a_reader_sees_its_app_what_is_everybodys_and_the_types_it_names() {
    let events = Events::default();
    let own = KeyScope::App(AppId(1));
    let mut all = reader(&events, Position::Now, KeyScope::All, None);
    let mut app = reader(&events, Position::Now, own, None);
    let mut faults = reader(
        &events,
        Position::Now,
        own,
        Some(vec![EventType::PluginFault]),
    );
    events.publish(Audience::App(AppId(2)), events_of(2));
    events.publish(Audience::Owner, fault(1));
    events.publish(Audience::App(AppId(1)), events_of(1));
    events.publish(Audience::Everyone, fault(2));
    let kinds = |messages: Vec<(String, Value)>| messages.into_iter().map(|(kind, _)| kind);
    let all_kinds: Vec<_> = kinds(next(&mut all, 4).await).collect();
    assert_eq!(
        all_kinds,
        ["download", "plugin-fault", "download", "plugin-fault"]
    );
    let messages = next(&mut app, 2).await;
    assert_eq!(messages[0].1["appId"], 1);
    assert_eq!(messages[1].1["message"], "2");
    assert_eq!(numbers(&next(&mut faults, 1).await), [2]);
}

#[tokio::test]
async fn a_silent_stream_says_that_it_lives() {
    let events = Events::default();
    let mut pieces = reader(&events, Position::Now, KeyScope::All, None);
    let greeting = pieces.next().await.unwrap().unwrap();
    assert_eq!(greeting, "retry: 2000\n\n");
    // A comment, which no client mistakes for an event.
    assert_eq!(pieces.next().await.unwrap().unwrap(), ":\n\n");
}

#[test]
fn an_event_and_its_type_have_one_name() {
    for event in [fault(1), events_of(1)] {
        let json = serde_json::to_value(&event).unwrap();
        assert_eq!(json["type"], EventType::from(&event).to_string());
    }
}
