//! Pulls that the engine itself would wait for without end, and pulls that it would begin without enough room.

use std::time::Duration;

use engine::registry::Repository;
use engine::{Disk, EngineError, Images as _, RESERVE};
use model::ImageRef;

use crate::suite::registry_proxy::{Manner, RegistryProxy};
use crate::suite::{Fixture, PATIENCE};

promise!(pull_that_stalls_is_given_up_and_tried_again, |fixture| {
    let suite: &dyn Fixture = &*fixture;
    let proxy = RegistryProxy::start(&suite.registry(), Manner::StallsInBlobs).await;
    let image = format!("{}/{}", proxy.address(), suite.publish().await);
    let image: ImageRef = image.parse().unwrap();
    let engine = fixture
        .engine_at(&fixture.uri)
        .with_pull_patience(Duration::from_secs(2));
    for _ in 0..2 {
        let pull = engine.pull_image(&image, None, &|_| {});
        let pulled = tokio::time::timeout(PATIENCE, pull).await;
        let Err(EngineError::Failed { action, source }) = pulled.expect("it is given up") else {
            panic!("the registry has stalled, and yet the image is here");
        };
        assert_eq!(action, format!("pull `{image}`"));
        assert_eq!(source.to_string(), "its registry has sent nothing for 2 s");
    }
    // The stalled pull blocks nothing. On a busy machine, Docker may say nothing for 2 s while it unpacks.
    proxy.recover();
    let engine = suite.engine();
    let pull = engine.pull_image(&image, None, &|_| {});
    let pulled = tokio::time::timeout(PATIENCE, pull).await;
    let pulled = pulled.expect("it goes on").unwrap();
    assert!(pulled.references.contains(&image), "{pulled:?}");
});

promise!(
    image_that_does_not_fit_is_refused_before_it_is_pulled,
    |fixture| {
        let suite: &dyn Fixture = &*fixture;
        let published = suite.publish().await;
        let image: ImageRef = format!("{}/{published}", suite.registry()).parse().unwrap();
        // Its base is present, so only its own layer is needed.
        let (engine, base) = (suite.engine(), suite.image());
        engine.pull_image(&base, None, &|_| {}).await.unwrap();
        let repository = Repository::new(&image, None).unwrap();
        let manifest = repository.manifest(None).await.unwrap();
        let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
        let layers = manifest["layers"].as_array().unwrap();
        let own = layers.last().unwrap()["size"].as_u64().unwrap();
        assert!(layers.len() > 1 && own > 400 << 10, "{manifest}");

        let on = |free: u64| {
            let engine = fixture.engine_at(&fixture.uri);
            engine.with_disk(Disk::that_says(move |_| Ok(free)))
        };
        let room = RESERVE + own * 3;
        let refused = on(room - 1).pull_image(&image, None, &|_| {}).await;
        match refused {
            Err(EngineError::NoRoom {
                download,
                needed,
                free,
                ..
            }) => assert_eq!((download, needed, free), (own, own * 3, room - 1)),
            other => panic!("there is no room, and yet: {other:?}"),
        }
        let held = suite.engine().images().await.unwrap();
        assert!(held.iter().all(|held| !held.references.contains(&image)));
        on(room).pull_image(&image, None, &|_| {}).await.unwrap();
    }
);

promise!(
    engine_whose_folder_is_not_to_be_seen_pulls_all_the_same,
    |fixture| {
        let suite: &dyn Fixture = &*fixture;
        let image = format!("{}/{}", suite.registry(), suite.publish().await);
        let image: ImageRef = image.parse().unwrap();
        let engine = fixture
            .engine_at(&fixture.uri)
            .with_disk(Disk::that_says(
                |_| Err(std::io::ErrorKind::NotFound.into()),
            ));
        engine.pull_image(&image, None, &|_| {}).await.unwrap();
    }
);
