//! Checks against the engine itself that each field of a service or network arrives.

use std::collections::BTreeMap;

use bollard::query_parameters::{InspectContainerOptions, InspectNetworkOptions};
use engine::NetworkSpec;
use model::{
    DeviceMapping, Healthcheck, IpamPool, Mount, NetworkAttachment, NetworkMode, PortMapping,
    Protocol, RestartPolicy, Ulimit,
};

use crate::suite::{Fixture, Program, network_config};

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

/// Checks that everything in `expected` is in `found`; `found` may have more.
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

promise!(network_is_made_as_it_is_described, |fixture| {
    let suite: &dyn Fixture = &*fixture;
    let docker = fixture.bare().await;
    let mut config = network_config(&suite.ownership());
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
    let spec = NetworkSpec {
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
    let mut config = network_config(&suite.ownership());
    config.config_only = true;
    let spec = NetworkSpec {
        name: &name,
        config: &config,
    };
    suite.engine().create_network(&spec).await.unwrap();
    let found = docker
        .inspect_network(&name, None::<InspectNetworkOptions>)
        .await
        .unwrap();
    assert_eq!(found.config_only, Some(true));

    let mut config = network_config(&suite.ownership());
    config.ipam = vec![IpamPool {
        subnet: Some("no subnet".into()),
        ..Default::default()
    }];
    let name = suite.name("wrong");
    let spec = NetworkSpec {
        name: &name,
        config: &config,
    };
    let made = suite.engine().create_network(&spec).await;
    assert!(made.is_err(), "{made:?}");
});
