//! The connection to the engine, and objects that it must not reach.

use bollard::models::VolumeCreateRequest;
use bollard::query_parameters::RemoveVolumeOptions;
use engine::{Containers as _, Engine, EngineError, Engines, VolumeSpec};
use model::{ContainerState, EngineKind, ImageRef};

use crate::suite::{Fixture, PATIENCE, Program, volume_config};

promise!(volume_that_somebody_else_made_is_a_conflict, |fixture| {
    let suite: &dyn Fixture = &*fixture;
    let docker = fixture.bare().await;
    let name = suite.name("data");
    let request = VolumeCreateRequest {
        name: Some(name.clone()),
        ..Default::default()
    };
    docker.create_volume(request).await.unwrap();
    let config = volume_config(&suite.ownership());
    let spec = VolumeSpec {
        name: &name,
        config: &config,
    };
    let made = suite.engine().create_volume(&spec).await;
    assert!(
        matches!(&made, Err(EngineError::Conflict { hint, .. }) if hint.contains(&name)),
        "{made:?}"
    );
    suite.engine().remove_volume(&name).await.unwrap();
    // It is still there.
    docker
        .remove_volume(&name, None::<RemoveVolumeOptions>)
        .await
        .unwrap();
});

promise!(engine_that_was_restarted_is_found_again, |fixture| {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("docker.sock");
    let uri = format!("unix://{}", socket.display());
    let engine = fixture.engine_at(&uri);
    let away = engine.containers().await;
    assert!(matches!(&away, Err(EngineError::Unreachable { address, .. }) if *address == uri));

    let door = Door::open(&socket, &fixture.uri);
    assert_eq!(engine.containers().await.unwrap(), []);
    let mut events = engine.events().await.unwrap();
    drop(door);
    // The stream of events ends with the engine, and every request reports that it is unreachable.
    let end = async { while futures::StreamExt::next(&mut events).await.is_some() {} };
    tokio::time::timeout(PATIENCE, end).await.unwrap();
    assert!(matches!(
        engine.info().await,
        Err(EngineError::Unreachable { .. })
    ));

    std::fs::remove_file(&socket).unwrap();
    let _door = Door::open(&socket, &fixture.uri);
    assert_eq!(engine.containers().await.unwrap(), []);
    assert_eq!(
        engine.info().await.unwrap().api_version,
        fixture.bare().await.client_version().to_string()
    );
});

/// A second socket of the engine, which can be closed with all its connections.
struct Door(tokio::task::JoinHandle<()>);

impl Door {
    fn open(socket: &std::path::Path, engine: &str) -> Self {
        let listener = tokio::net::UnixListener::bind(socket).unwrap();
        let engine = engine.strip_prefix("unix://").unwrap().to_owned();
        Door(tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((mut client, _)) = listener.accept().await {
                let engine = engine.clone();
                connections.spawn(async move {
                    let mut engine = tokio::net::UnixStream::connect(engine).await.unwrap();
                    // Ends when either side closes.
                    let _ = tokio::io::copy_bidirectional(&mut client, &mut engine).await;
                });
            }
        }))
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.0.abort();
    }
}

promise!(names_do_not_lead_to_other_resources, |fixture| {
    let suite: &dyn Fixture = &*fixture;
    let engine = suite.engine();
    let id = suite.start(&suite.service("web", &Program::Tick)).await;
    let elsewhere = format!("../containers/{id}");
    assert!(engine.remove_volume(&elsewhere).await.is_err());
    let _ = engine.remove_network(&elsewhere).await;
    for image in [
        format!("x/../../containers/{id}"),
        format!("../containers/{id}?force=1"),
    ] {
        assert!(engine.remove_image(&image.parse().unwrap()).await.is_err());
        assert!(
            engine
                .pull_image(&image.parse().unwrap(), None, &|_| {})
                .await
                .is_err()
        );
    }
    assert!(
        engine
            .remove_container(&elsewhere.parse().unwrap())
            .await
            .is_err()
    );
    assert_eq!(
        suite.find(&id).await.unwrap().state,
        ContainerState::Running
    );
});

promise!(images_go_to_the_engine_of_their_kind, |fixture| {
    let suite: &dyn Fixture = &*fixture;
    let engines = Engines::new(vec![suite.engine()]);
    let container = format!("{}/{}", suite.registry(), suite.publish().await);
    let pulled = engines
        .pull(&container.parse().unwrap(), None, &|_| {})
        .await
        .unwrap();
    assert_eq!(pulled.engine, EngineKind::Docker);

    let component: ImageRef = fixture.publish_component().await.parse().unwrap();
    assert_eq!(
        engine::kind_of(&component, None).await.unwrap(),
        EngineKind::Wasm
    );
    let refused = engines.pull(&component, None, &|_| {}).await;
    assert!(
        matches!(&refused, Err(EngineError::WrongKind { reason, .. }) if reason.contains("WebAssembly")),
        "{refused:?}"
    );

    let missing: ImageRef = format!("{}/suite/missing:1", suite.registry())
        .parse()
        .unwrap();
    let pulled = engines.pull(&missing, None, &|_| {}).await;
    assert!(
        matches!(pulled, Err(EngineError::NotFound { .. })),
        "{pulled:?}"
    );
});
