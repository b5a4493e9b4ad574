//! Pulls that the engine itself would wait for without an end.

use std::time::Duration;

use engine::{Engine, EngineError};
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
    let pull = || tokio::time::timeout(PATIENCE, engine.pull_image(&image, None, &|_| {}));
    for _ in 0..2 {
        let Err(EngineError::Failed { action, source }) = pull().await.expect("it is given up")
        else {
            panic!("the registry has stalled, and yet the image is here");
        };
        assert_eq!(action, format!("pull `{image}`"));
        assert_eq!(source.to_string(), "its registry has sent nothing for 2 s");
    }
    // What has stalled is in the way of nothing.
    proxy.recover();
    let pulled = pull().await.expect("it goes on").unwrap();
    assert!(pulled.references.contains(&image), "{pulled:?}");
});
