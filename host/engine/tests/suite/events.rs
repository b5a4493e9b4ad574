//! Events from the engine.

use std::time::Duration;

use engine::EngineEvent;
use futures::StreamExt;
use futures::stream::BoxStream;
use model::ContainerId;

use super::{Fixture, PATIENCE, Program};

pub async fn events_report_every_change_of_a_container(fixture: &dyn Fixture) {
    let engine = fixture.engine();
    fixture.pull().await;
    let mut events = engine.events().await.unwrap();
    let service = fixture.service("web", &Program::Tick);

    let id = fixture.create(&service).await;
    expect(&mut events, &id, "made").await;
    engine.start_container(&id).await.unwrap();
    expect(&mut events, &id, "started").await;
    engine
        .rename_container(&id, &fixture.name("new"))
        .await
        .unwrap();
    expect(&mut events, &id, "renamed").await;
    engine.stop_container(&id, Duration::ZERO).await.unwrap();
    expect(&mut events, &id, "stopped").await;
    engine.remove_container(&id).await.unwrap();
    expect(&mut events, &id, "removed").await;

    let id = fixture
        .start(&fixture.service("exit", &Program::Exit(0)))
        .await;
    for change in ["made", "started", "ended"] {
        expect(&mut events, &id, change).await;
    }
}

/// Waits for an event of this container; other events may come before it.
async fn expect(events: &mut BoxStream<'static, EngineEvent>, id: &ContainerId, change: &str) {
    let expected = EngineEvent::Container(id.clone());
    let found = async {
        while let Some(event) = events.next().await {
            if event == expected {
                return true;
            }
        }
        false
    };
    let found = tokio::time::timeout(PATIENCE, found).await;
    assert_eq!(found, Ok(true), "no news that {id} was {change}");
}
