//! What only the docker engine promises.

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

use bollard::models::{NetworkCreateRequest, NetworkDisconnectRequest, VolumeCreateRequest};
use bollard::query_parameters::{
    InspectContainerOptions, InspectNetworkOptions, RemoveVolumeOptions,
};
use engine::{ContainerSpec, Engine, EngineError, Engines, LogsFrom};
use model::{
    ContainerState, DeviceMapping, EngineKind, Healthcheck, ImageRef, IpamPool, Mount,
    NetworkAttachment, NetworkMode, PortMapping, Protocol, RestartPolicy, ServiceName, Ulimit,
};

use crate::fixture::DockerFixture;
use crate::suite::{Fixture, Program, free_port, next_line, run};

/// One test, with a fixture for a new device.
macro_rules! promise {
    ($name:ident, |$fixture:ident| $test:block) => {
        #[test]
        fn $name() {
            run(DockerFixture::open(), |$fixture| async move { $test });
        }
    };
}

promise!(every_field_reaches_the_engine, |fixture| {
    let fixture: &dyn Fixture = &*fixture;
    fixture.volume("data").await;
    let network = fixture.network("front").await;
    let mut service = fixture.service("web", &Program::Tick);
    let config = &mut service.config;
    config.entrypoint = Some(vec!["sh".into(), "-c".into()]);
    config.command = Some(vec!["sleep 1000".into()]);
    config.environment = BTreeMap::from([("A".into(), "b".into())]);
    config.restart = RestartPolicy::OnFailure;
    config.network_mode = NetworkMode::Network(network.clone());
    config.networks = BTreeMap::from([(
        network.clone(),
        NetworkAttachment {
            aliases: vec!["web".into(), "api".into()],
            ..Default::default()
        },
    )]);
    config.ports = vec![PortMapping {
        host_ip: "127.0.0.1".into(),
        host_port: None,
        container_port: 53,
        protocol: Protocol::Udp,
    }];
    config.mounts = vec![
        Mount::Volume {
            source: fixture.name("data"),
            target: "/data".into(),
            read_only: true,
        },
        Mount::Anonymous {
            target: "/scratch".into(),
        },
        Mount::Tmpfs {
            target: "/mem".into(),
            size: 1 << 20,
        },
    ];
    config.tmpfs = BTreeMap::from([("/run".into(), "size=64k".into())]);
    config.devices = vec![DeviceMapping {
        host: "/dev/null".into(),
        container: "/dev/nothing".into(),
        permissions: "rw".into(),
    }];
    config.healthcheck = Some(Healthcheck {
        test: vec!["CMD".into(), "true".into()],
        interval: Some(2_000_000_000),
        timeout: Some(1_000_000_000),
        start_period: Some(3_000_000_000),
        retries: Some(4),
    });
    config.mem_limit = 64 << 20;
    config.mem_reservation = 32 << 20;
    config.shm_size = 1 << 20;
    config.stop_grace_period = 7;
    config.stop_signal = Some("SIGINT".into());
    config.ulimits = BTreeMap::from([(
        "nofile".into(),
        Ulimit {
            soft: 100,
            hard: 200,
        },
    )]);
    config.sysctls = BTreeMap::from([("net.ipv4.ip_default_ttl".into(), "63".into())]);
    config.dns = vec!["192.0.2.1".into()];
    config.dns_search = vec!["example.org".into()];
    config.dns_opt = vec!["ndots:2".into()];
    config.cap_add = vec!["NET_ADMIN".into()];
    config.cap_drop = vec!["MKNOD".into()];
    config.extra_hosts = vec!["db:192.0.2.2".into()];
    config.group_add = vec!["7".into()];
    config.security_opt = vec!["no-new-privileges".into()];
    config.nano_cpus = 500_000_000;
    config.cpu_shares = 512;
    config.oom_score_adj = 100;
    config.cpuset = "0".into();
    config.domainname = "example.org".into();
    config.hostname = "shop".into();
    config.mac_address = "02:42:ac:11:00:99".into();
    config.user = "7:7".into();
    config.working_dir = "/tmp".into();
    config.pids_limit = 50;
    config.read_only = true;
    config.init = Some(true);
    config.tty = true;
    let id = fixture.start(&service).await;

    let docker =
        bollard::Docker::connect_with_host(&std::env::var("SUPERVISOR_TEST_DOCKER").unwrap());
    let docker = docker.unwrap().negotiate_version().await.unwrap();
    let found = docker.inspect_container(id.as_str(), None::<InspectContainerOptions>);
    let found = serde_json::to_value(found.await.unwrap()).unwrap();
    let expected = serde_json::json!({
        "Config": {
            "Entrypoint": ["sh", "-c"], "Cmd": ["sleep 1000"], "Tty": true, "User": "7:7",
            "WorkingDir": "/tmp", "Hostname": "shop", "Domainname": "example.org",
            "StopSignal": "SIGINT", "StopTimeout": 7,
            "Healthcheck": {
                "Test": ["CMD", "true"], "Interval": 2_000_000_000_i64, "Timeout": 1_000_000_000,
                "StartPeriod": 3_000_000_000_i64, "Retries": 4
            },
        },
        "HostConfig": {
            "RestartPolicy": { "Name": "on-failure", "MaximumRetryCount": 0 },
            "NetworkMode": network,
            "PortBindings": { "53/udp": [{ "HostIp": "127.0.0.1", "HostPort": "" }] },
            "Tmpfs": { "/run": "size=64k" },
            "Devices": [{
                "PathOnHost": "/dev/null", "PathInContainer": "/dev/nothing",
                "CgroupPermissions": "rw"
            }],
            "Memory": 64 << 20, "MemoryReservation": 32 << 20, "ShmSize": 1 << 20,
            "Ulimits": [{ "Name": "nofile", "Soft": 100, "Hard": 200 }],
            "Sysctls": { "net.ipv4.ip_default_ttl": "63" },
            "Dns": ["192.0.2.1"], "DnsSearch": ["example.org"], "DnsOptions": ["ndots:2"],
            "CapAdd": ["NET_ADMIN"], "CapDrop": ["MKNOD"], "ExtraHosts": ["db:192.0.2.2"],
            "GroupAdd": ["7"], "SecurityOpt": ["no-new-privileges"],
            "NanoCpus": 500_000_000, "CpuShares": 512, "OomScoreAdj": 100, "CpusetCpus": "0",
            "PidsLimit": 50, "ReadonlyRootfs": true, "Init": true, "IpcMode": "shareable",
        },
    });
    assert_contains(&found, &expected, "");
    let endpoint = &found["NetworkSettings"]["Networks"][&network];
    assert_eq!(endpoint["MacAddress"], "02:42:ac:11:00:99");
    for alias in ["web", "api"] {
        assert!(
            endpoint["Aliases"]
                .as_array()
                .unwrap()
                .contains(&alias.into()),
            "{endpoint}"
        );
    }
    let mut mounts: Vec<_> = found["Mounts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|mount| {
            let kind = mount["Type"].as_str().unwrap();
            (
                mount["Destination"].as_str().unwrap(),
                kind,
                mount["RW"].as_bool().unwrap(),
            )
        })
        .collect();
    mounts.sort_unstable();
    let mounted = [
        ("/data", "volume", false),
        ("/mem", "tmpfs", true),
        ("/scratch", "volume", true),
    ];
    assert_eq!(mounts, mounted);
});

/// Everything in `expected` is in `found`; `found` may have more.
fn assert_contains(found: &serde_json::Value, expected: &serde_json::Value, path: &str) {
    match expected {
        serde_json::Value::Object(fields) => {
            for (name, value) in fields {
                assert_contains(&found[name], value, &format!("{path}/{name}"));
            }
        }
        _ => assert_eq!(found, expected, "{path}"),
    }
}

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
    // The old image has no reference of its own now, and goes with its container.
    engine.remove_container(&id).await.unwrap();
    let _ = docker
        .remove_image(
            observed.id.as_str(),
            None::<bollard::query_parameters::RemoveImageOptions>,
            None,
        )
        .await;
});

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
        // As if we had been killed before the second request.
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

promise!(volume_that_somebody_else_made_is_a_conflict, |fixture| {
    let suite: &dyn Fixture = &*fixture;
    let docker = fixture.bare().await;
    let name = suite.name("data");
    let request = VolumeCreateRequest {
        name: Some(name.clone()),
        ..Default::default()
    };
    docker.create_volume(request).await.unwrap();
    let config = crate::suite::volume_config(&suite.scope());
    let spec = engine::VolumeSpec {
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

promise!(network_is_made_as_it_is_described, |fixture| {
    let suite: &dyn Fixture = &*fixture;
    let docker = fixture.bare().await;
    let mut config = crate::suite::network_config(&suite.scope());
    config.driver_opts =
        BTreeMap::from([("com.docker.network.bridge.enable_icc".into(), "true".into())]);
    config.internal = true;
    config.enable_ipv6 = true;
    config.ipam = vec![
        IpamPool {
            subnet: Some("10.254.253.0/24".into()),
            gateway: Some("10.254.253.9".into()),
            ip_range: Some("10.254.253.128/25".into()),
            aux_addresses: BTreeMap::from([("printer".into(), "10.254.253.200".into())]),
        },
        IpamPool {
            subnet: Some("fd00:254:253::/64".into()),
            ..Default::default()
        },
    ];
    let name = suite.name("front");
    let spec = engine::NetworkSpec {
        name: &name,
        config: &config,
    };
    suite.engine().create_network(&spec).await.unwrap();
    let found = docker
        .inspect_network(&name, None::<InspectNetworkOptions>)
        .await
        .unwrap();
    let found = serde_json::to_value(found).unwrap();
    assert_contains(
        &found,
        &serde_json::json!({
            "Driver": "bridge", "Internal": true, "EnableIPv6": true,
            "Options": { "com.docker.network.bridge.enable_icc": "true" },
            "IPAM": { "Driver": "default", "Config": [
                {
                    "Subnet": "10.254.253.0/24", "Gateway": "10.254.253.9",
                    "IPRange": "10.254.253.128/25",
                    "AuxiliaryAddresses": { "printer": "10.254.253.200" },
                },
                { "Subnet": "fd00:254:253::/64" },
            ] },
        }),
        "",
    );

    let name = suite.name("bare");
    let mut config = crate::suite::network_config(&suite.scope());
    config.config_only = true;
    let spec = engine::NetworkSpec {
        name: &name,
        config: &config,
    };
    suite.engine().create_network(&spec).await.unwrap();
    let found = docker
        .inspect_network(&name, None::<InspectNetworkOptions>)
        .await
        .unwrap();
    assert_eq!(found.config_only, Some(true));

    let mut config = crate::suite::network_config(&suite.scope());
    config.ipam = vec![IpamPool {
        subnet: Some("no subnet".into()),
        ..Default::default()
    }];
    let name = suite.name("wrong");
    let spec = engine::NetworkSpec {
        name: &name,
        config: &config,
    };
    let made = suite.engine().create_network(&spec).await;
    assert!(made.is_err(), "{made:?}");
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

promise!(image_for_another_architecture_is_said_to_be, |fixture| {
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
        // This runtime finds out in the container alone, and its log says so.
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

promise!(port_that_is_taken_is_named_by_the_failure, |fixture| {
    let suite: &dyn Fixture = &*fixture;
    let port = free_port();
    let taken = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
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
    drop(taken);
    suite.engine().start_container(&id).await.unwrap();
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
    // News end with the engine, and every request says that it is away.
    let end = async { while futures::StreamExt::next(&mut events).await.is_some() {} };
    tokio::time::timeout(Duration::from_secs(30), end)
        .await
        .unwrap();
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
                    // Ends with either side.
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
