//! An engine that we share: objects of another device do not exist for us.

use std::time::Duration;

use engine::{EngineError, LogsFrom, NetworkSpec, VolumeSpec};
use futures::StreamExt;
use model::ContainerState;

use super::{Fixture, PATIENCE, Program, create_on, labels, named, network_config, volume_config};
use engine::EngineEvent;

pub async fn objects_of_another_device_are_invisible(fixture: &dyn Fixture) {
    let other = fixture.other_engine();
    let mut news_of_other = other.events().await.unwrap();
    let id = fixture.start(&fixture.service("web", &Program::Tick)).await;
    fixture.volume("data").await;
    fixture.network("front").await;

    assert_eq!(other.containers().await.unwrap(), []);
    assert_eq!(other.volumes().await.unwrap(), []);
    assert_eq!(other.networks().await.unwrap(), []);
    assert!(matches!(
        other.environment(&id).await,
        Err(EngineError::NotFound { .. })
    ));
    assert!(matches!(
        other.logs(&id, LogsFrom::Start).await,
        Err(EngineError::NotFound { .. })
    ));

    // The first event of a container that it receives concerns its own.
    let mut service = fixture.service("web", &Program::Tick);
    service.name = named(&fixture.other_ownership(), "theirs");
    service.config.labels = labels(&fixture.other_ownership());
    let theirs = create_on(&*other, &service).await.unwrap();
    let first = async {
        loop {
            match news_of_other.next().await {
                Some(EngineEvent::Other) => {}
                event => return event,
            }
        }
    };
    let first = tokio::time::timeout(PATIENCE, first).await.unwrap();
    assert_eq!(first, Some(EngineEvent::Container(theirs)));
}

pub async fn objects_of_another_device_are_not_touched(fixture: &dyn Fixture) {
    let other = fixture.other_engine();
    let service = fixture.service("web", &Program::Tick);
    let id = fixture.start(&service).await;
    let volume = fixture.volume("data").await;
    let network = fixture.network("front").await;
    let made = fixture
        .create(&fixture.service("made", &Program::Tick))
        .await;

    other.stop_container(&id, Duration::ZERO).await.unwrap();
    other.remove_container(&id).await.unwrap();
    assert!(
        other
            .rename_container(&id, &fixture.name("new"))
            .await
            .is_err()
    );
    assert!(other.start_container(&made).await.is_err());
    other.remove_volume(&volume).await.unwrap();
    other.remove_network(&network).await.unwrap();

    let found = fixture.find(&id).await.unwrap();
    assert_eq!(
        (found.state, &found.name),
        (ContainerState::Running, &service.name)
    );
    assert_eq!(
        fixture.find(&made).await.unwrap().state,
        ContainerState::Created
    );
    assert_eq!(fixture.engine().volumes().await.unwrap().len(), 1);
    assert_eq!(fixture.engine().networks().await.unwrap().len(), 1);
}

pub async fn names_of_another_device_are_a_conflict(fixture: &dyn Fixture) {
    let other = fixture.other_engine();
    let mut service = fixture.service("web", &Program::Tick);
    fixture.create(&service).await;
    service.config.labels = labels(&fixture.other_ownership());
    let made = create_on(&*other, &service).await;
    assert!(
        matches!(made, Err(EngineError::Conflict { .. })),
        "{made:?}"
    );

    let name = fixture.volume("data").await;
    let config = volume_config(&fixture.other_ownership());
    let made = other
        .create_volume(&VolumeSpec {
            name: &name,
            config: &config,
        })
        .await;
    assert!(
        matches!(made, Err(EngineError::Conflict { .. })),
        "{made:?}"
    );

    let name = fixture.network("front").await;
    let config = network_config(&fixture.other_ownership());
    let made = other
        .create_network(&NetworkSpec {
            name: &name,
            config: &config,
        })
        .await;
    assert!(
        matches!(made, Err(EngineError::Conflict { .. })),
        "{made:?}"
    );
}

pub async fn objects_under_a_former_uuid_of_the_device_are_still_its_own(fixture: &dyn Fixture) {
    let id = fixture.start(&fixture.service("web", &Program::Tick)).await;
    let volume = fixture.volume("data").await;
    let network = fixture.network("front").await;
    let stranger = fixture.other_engine();
    let mut theirs = fixture.service("web", &Program::Tick);
    theirs.name = named(&fixture.other_ownership(), "theirs");
    theirs.config.labels = labels(&fixture.other_ownership());
    let theirs = create_on(&*stranger, &theirs).await.unwrap();

    let renewed = engine::Ownership {
        former: vec![fixture.ownership().device],
        ..super::new_ownership()
    };
    let renewed = fixture.engine_of(renewed).await;
    let mut events = renewed.events().await.unwrap();
    let found: Vec<_> = renewed.containers().await.unwrap();
    assert_eq!(found.iter().map(|one| &one.id).collect::<Vec<_>>(), [&id]);
    let volumes = renewed.volumes().await.unwrap();
    assert_eq!(
        volumes.iter().map(|one| &one.name).collect::<Vec<_>>(),
        [&volume]
    );
    let networks = renewed.networks().await.unwrap();
    assert_eq!(
        networks.iter().map(|one| &one.name).collect::<Vec<_>>(),
        [&network]
    );

    renewed.remove_container(&theirs).await.unwrap();
    renewed.stop_container(&id, Duration::ZERO).await.unwrap();
    let foreign = async {
        while let Some(event) = events.next().await {
            if event == EngineEvent::Container(id.clone()) {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, foreign).await.unwrap();
    renewed.remove_container(&id).await.unwrap();
    renewed.remove_volume(&volume).await.unwrap();
    renewed.remove_network(&network).await.unwrap();
    assert_eq!(fixture.engine().containers().await.unwrap(), []);
    assert_eq!(fixture.engine().volumes().await.unwrap(), []);
    assert_eq!(fixture.engine().networks().await.unwrap(), []);
    assert_eq!(stranger.containers().await.unwrap().len(), 1);
}
