//! Images, output and mounts of containers.

use std::error::Error;

use bollard::query_parameters::RemoveImageOptions;
use engine::{ContainerSpec, EngineError, LogsFrom};
use held_port::HeldPort;
use model::{ContainerState, ImageRef, Mount, PortMapping, Protocol};

use crate::suite::{Fixture, Program, next_line};

promise!(tag_that_has_moved_does_not_change_what_is_made, |fixture| {
    let engine = fixture.engine();
    let docker = fixture.bare().await;
    let tag: ImageRef = format!("{}:1", fixture.name_of("image_moving"))
        .parse()
        .unwrap();
    fixture.build(tag.as_str(), "which", b"old").await;
    let observed = engine.pull_image(&tag, None, &|_| {}).await.unwrap();
    fixture.build(tag.as_str(), "which", b"new").await;
    assert_ne!(
        engine.pull_image(&tag, None, &|_| {}).await.unwrap().id,
        observed.id
    );

    let mut service = (&*fixture as &dyn Fixture).service("web", &Program::Tick);
    service.config.image = tag.clone();
    let spec = ContainerSpec {
        name: &service.name,
        config: &service.config,
        init_environment: &service.init_environment,
        image_id: &observed.id,
        network_container: None,
    };
    let id = engine.create_container(&spec).await.unwrap().id;
    let listed = engine.containers().await.unwrap();
    assert_eq!(listed[0].image_id, observed.id);
    assert_eq!(listed[0].image, tag.as_str());
    // The old image has no reference left, and is removed with its container.
    engine.remove_container(&id).await.unwrap();
    let _ = docker
        .remove_image(observed.id.as_str(), None::<RemoveImageOptions>, None)
        .await;
});

promise!(lines_of_a_terminal_are_as_they_were_printed, |fixture| {
    let suite: &dyn Fixture = &*fixture;
    let printed = Program::Print {
        out: "one".into(),
        err: "two".into(),
    };
    let mut service = suite.service("print", &printed);
    service.config.tty = true;
    assert_eq!(
        suite.finish(&service).await,
        (Some(0), vec!["one".into(), "two".into()])
    );

    let mut service = suite.service("long", &Program::PrintLong(40_000));
    service.config.tty = true;
    let (_, pieces) = suite.finish(&service).await;
    let lengths: Vec<_> = pieces.iter().map(String::len).collect();
    assert_eq!(lengths, [16 << 10, 16 << 10, 40_000 - (32 << 10)]);
    assert!(pieces.concat().bytes().all(|byte| byte == b'x'));
});

promise!(an_image_for_another_architecture_is_reported, |fixture| {
    let suite: &dyn Fixture = &*fixture;
    let image: ImageRef = format!("{}:1", fixture.name_of("image_foreign"))
        .parse()
        .unwrap();
    // The header of a program for an IBM System/390, padded.
    let mut program = vec![
        0x7f, b'E', b'L', b'F', 2, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 22,
    ];
    program.resize(4096, 0);
    fixture.build(image.as_str(), "foreign", &program).await;
    let mut service = suite.service("web", &Program::Tick);
    service.config.image = image;
    service.config.command = Some(vec!["/foreign".into()]);
    let id = suite.create(&service).await;
    match suite.engine().start_container(&id).await {
        Err(EngineError::Invalid(message)) => {
            assert!(message.contains("architecture"), "{message}")
        }
        // This runtime finds out only in the container, and the container's log shows it.
        Ok(()) => {
            suite.wait_for(&id, ContainerState::Exited).await;
            let mut logs = suite.engine().logs(&id, LogsFrom::Start).await.unwrap();
            let line = next_line(&mut logs).await.unwrap();
            assert!(line.message.contains("exec format error"), "{line:?}");
        }
        other => panic!("{other:?}"),
    }
});

promise!(
    bind_is_seen_inside_and_made_where_it_is_missing,
    |fixture| {
        let suite: &dyn Fixture = &*fixture;
        let folder = tempfile::tempdir().unwrap();
        let append = Program::Append {
            file: "/bound/notes".into(),
            text: "from inside".into(),
        };
        for source in [
            folder.path().join("missing/folder"),
            folder.path().join("with:colon"),
        ] {
            if source.to_string_lossy().contains(':') {
                std::fs::create_dir(&source).unwrap();
            }
            let mut service = suite.service("web", &append);
            service.config.mounts.push(Mount::Bind {
                source: source.to_string_lossy().into_owned(),
                target: "/bound".into(),
                read_only: false,
            });
            assert_eq!(suite.finish(&service).await.0, Some(0));
            let notes = std::fs::read_to_string(source.join("notes")).unwrap();
            assert_eq!(notes, "from inside\n");
        }
    }
);

promise!(the_error_names_a_port_that_is_in_use, |fixture| {
    let suite: &dyn Fixture = &*fixture;
    // It stays this test's between the listener and the container.
    let held = HeldPort::new().unwrap();
    let listener = std::net::TcpListener::bind(held.address()).unwrap();
    let port = held.address().port();
    let mut service = suite.service("web", &Program::Tick);
    service.config.ports.push(PortMapping {
        host_ip: "127.0.0.1".into(),
        host_port: Some(port),
        container_port: 80,
        protocol: Protocol::Tcp,
    });
    let id = suite.create(&service).await;
    let error = suite.engine().start_container(&id).await.unwrap_err();
    let cause = error.source().unwrap().to_string();
    assert!(cause.contains(&port.to_string()), "{error}: {cause}");
    drop(listener);
    suite.engine().start_container(&id).await.unwrap();
});
