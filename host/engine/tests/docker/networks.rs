//! Networks that services join, share and leave.

use bollard::models::{NetworkCreateRequest, NetworkDisconnectRequest};
use bollard::query_parameters::InspectContainerOptions;
use engine::{ContainerSpec, EngineError};
use model::{ContainerState, NetworkMode, RestartPolicy, ServiceName};

use crate::suite::{Fixture, Program};

promise!(
    join_that_was_cut_short_is_made_good_at_the_start,
    |fixture| {
        let suite: &dyn Fixture = &*fixture;
        let front = suite.network("front").await;
        let back = suite.network("back").await;
        let service = suite
            .service("web", &Program::Tick)
            .in_networks(&[&front, &back], "web");
        let id = suite.create(&service).await;
        // As if the supervisor had been killed before the second request.
        let docker = fixture.bare().await;
        let leave = NetworkDisconnectRequest {
            container: id.to_string(),
            force: Some(true),
        };
        docker.disconnect_network(&back, leave).await.unwrap();

        suite.engine().start_container(&id).await.unwrap();
        let found = docker
            .inspect_container(id.as_str(), None::<InspectContainerOptions>)
            .await
            .unwrap();
        let networks = found.network_settings.unwrap().networks.unwrap();
        assert!(
            networks[&back]
                .aliases
                .as_ref()
                .unwrap()
                .contains(&"web".to_owned())
        );
        assert!(networks.contains_key(&front));
    }
);

promise!(
    container_that_cannot_join_a_network_is_not_left_behind,
    |fixture| {
        let suite: &dyn Fixture = &*fixture;
        let front = suite.network("front").await;
        let back = suite.network("back").await;
        let mut service = suite
            .service("web", &Program::Tick)
            .in_networks(&[&front, &back], "web");
        let attachment = service.config.networks.get_mut(&back).unwrap();
        attachment.ipv4_address = Some("not an address".into());
        let made = suite.try_create(&service).await;
        assert!(made.is_err(), "{made:?}");
        assert_eq!(suite.engine().containers().await.unwrap(), []);
    }
);

promise!(missing_network_is_named_at_the_start, |fixture| {
    let suite: &dyn Fixture = &*fixture;
    let front = suite.network("front").await;
    let missing = suite.name("missing");
    let service = suite
        .service("web", &Program::Tick)
        .in_networks(&[&front, &missing], "web");
    let id = suite.create(&service).await;
    let started = suite.engine().start_container(&id).await;
    assert!(
        matches!(&started, Err(EngineError::NotFound { what }) if what.contains(&missing)),
        "{started:?}"
    );
});

promise!(network_of_another_service_is_shared, |fixture| {
    let suite: &dyn Fixture = &*fixture;
    let serve = Program::Serve {
        port: 8080,
        text: "hello".into(),
    };
    let server = suite.start(&suite.service("server", &serve)).await;
    let fetch = Program::Fetch {
        host: "127.0.0.1".into(),
        port: 8080,
    };
    let mut service = suite.service("client", &fetch);
    service.config.network_mode = NetworkMode::Service("server".parse::<ServiceName>().unwrap());
    service.config.restart = RestartPolicy::OnFailure;
    let image = suite.pull().await;
    let spec = |network_container| ContainerSpec {
        name: &service.name,
        config: &service.config,
        init_environment: &service.init_environment,
        image_id: &image.id,
        network_container,
    };
    let alone = suite.engine().create_container(&spec(None)).await;
    assert!(matches!(alone, Err(EngineError::Invalid(_))), "{alone:?}");
    let client = suite
        .engine()
        .create_container(&spec(Some(&server)))
        .await
        .unwrap();
    suite.engine().start_container(&client.id).await.unwrap();
    let ended = suite.wait_for(&client.id, ContainerState::Exited).await;
    assert_eq!(ended.exit_code, Some(0));
});

promise!(every_network_of_ours_by_a_name_is_removed, |fixture| {
    let suite: &dyn Fixture = &*fixture;
    let docker = fixture.bare().await;
    let name = suite.network("front").await;
    let twin = NetworkCreateRequest {
        name: name.clone(),
        labels: Some(suite.labels().into_iter().collect()),
        ..Default::default()
    };
    docker.create_network(twin).await.unwrap();
    assert_eq!(suite.engine().networks().await.unwrap().len(), 2);
    suite.engine().remove_network(&name).await.unwrap();
    assert_eq!(suite.engine().networks().await.unwrap(), []);
});

promise!(network_in_use_is_not_removed, |fixture| {
    let suite: &dyn Fixture = &*fixture;
    let name = suite.network("front").await;
    suite
        .start(
            &suite
                .service("web", &Program::Tick)
                .in_networks(&[&name], "web"),
        )
        .await;
    let removed = suite.engine().remove_network(&name).await;
    assert!(
        matches!(removed, Err(EngineError::InUse { .. })),
        "{removed:?}"
    );
});
