//! Volumes.

use engine::{EngineError, VolumeSpec};
use model::Mount;

use super::{Fixture, Program, Service, volume_config};

fn with_volume(fixture: &dyn Fixture, name: &str, volume: &str, read_only: bool) -> Service {
    let mut service = fixture.service(
        name,
        &Program::Append {
            file: "/data/notes".into(),
            text: name.into(),
        },
    );
    service.config.mounts.push(Mount::Volume {
        source: volume.into(),
        target: "/data".into(),
        read_only,
    });
    service
}

pub async fn volume_keeps_its_data_across_containers(fixture: &dyn Fixture) {
    let volume = fixture.volume("data").await;
    let first = with_volume(fixture, "first", &volume, false);
    assert_eq!(
        fixture.finish(&first).await,
        (Some(0), vec!["first".to_owned()])
    );
    let second = with_volume(fixture, "second", &volume, false);
    let both = vec!["first".to_owned(), "second".to_owned()];
    assert_eq!(fixture.finish(&second).await, (Some(0), both));

    // Removed and created again, it is empty.
    fixture.engine().remove_volume(&volume).await.unwrap();
    fixture.volume("data").await;
    let third = with_volume(fixture, "third", &volume, false);
    assert_eq!(
        fixture.finish(&third).await,
        (Some(0), vec!["third".to_owned()])
    );
}

pub async fn making_a_volume_twice_is_no_error(fixture: &dyn Fixture) {
    let name = fixture.volume("data").await;
    fixture.volume("data").await;
    let listed = fixture.engine().volumes().await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].name, name);
    assert_eq!(listed[0].labels, fixture.labels());
    assert_eq!(listed[0].engine, fixture.engine().kind());
}

pub async fn removing_a_volume_that_is_gone_is_no_error(fixture: &dyn Fixture) {
    let name = fixture.volume("data").await;
    for _ in 0..2 {
        fixture.engine().remove_volume(&name).await.unwrap();
        assert_eq!(fixture.engine().volumes().await.unwrap(), []);
    }
}

pub async fn volume_in_use_is_not_removed(fixture: &dyn Fixture) {
    let engine = fixture.engine();
    let volume = fixture.volume("data").await;
    let id = fixture
        .create(&with_volume(fixture, "web", &volume, false))
        .await;
    let removed = engine.remove_volume(&volume).await;
    assert!(
        matches!(removed, Err(EngineError::InUse { .. })),
        "{removed:?}"
    );
    engine.remove_container(&id).await.unwrap();
    engine.remove_volume(&volume).await.unwrap();
}

pub async fn volume_that_is_mounted_read_only_cannot_be_written(fixture: &dyn Fixture) {
    let volume = fixture.volume("data").await;
    let (code, _) = fixture
        .finish(&with_volume(fixture, "web", &volume, true))
        .await;
    assert_eq!(code, Some(1));

    // Another configuration of ours with the same name is not silently accepted as equal.
    let mut config = volume_config(&fixture.ownership());
    let digest = fixture
        .ownership()
        .branding
        .label(model::CONFIG_DIGEST_LABEL);
    config.labels.insert(digest, "another".into());
    let spec = VolumeSpec {
        name: &volume,
        config: &config,
    };
    let made = fixture.engine().create_volume(&spec).await;
    assert!(
        matches!(made, Err(EngineError::Conflict { .. })),
        "{made:?}"
    );
}
