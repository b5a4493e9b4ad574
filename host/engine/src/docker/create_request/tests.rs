use expect_test::{Expect, expect};
use model::{EngineImageId, Healthcheck, ImageRef};

use super::*;

const V1_41: ClientVersion = api_1(41);

/// A service with compose's defaults.
fn service() -> ServiceConfig {
    let text = r#"{
        "image": "shop/web:1", "command": null, "entrypoint": null, "environment": {},
        "labels": {}, "restart": "always", "network_mode": { "network": "1_default" },
        "networks": { "1_default": {
            "aliases": ["web"], "ipv4_address": null, "ipv6_address": null, "link_local_ips": []
        } },
        "ports": [], "mounts": [], "tmpfs": {}, "devices": [], "healthcheck": null,
        "mem_limit": 0, "mem_reservation": 0, "shm_size": 67108864, "stop_grace_period": 10,
        "stop_signal": null, "ulimits": {}, "sysctls": {}, "dns": [], "dns_search": [],
        "dns_opt": [], "cap_add": [], "cap_drop": [], "extra_hosts": [], "group_add": [],
        "security_opt": [], "cpu_shares": 0, "cpu_quota": 0, "oom_score_adj": 0, "cpuset": "",
        "domainname": "", "hostname": "", "mac_address": "", "pid": "", "userns_mode": "",
        "cgroup_parent": "", "user": "", "working_dir": "", "ipc": "shareable", "pids_limit": 0,
        "privileged": false, "read_only": false, "oom_kill_disable": false, "init": null,
        "tty": true
    }"#;
    serde_json::from_str(text).unwrap()
}

fn request(config: &ServiceConfig, version: ClientVersion) -> Result<CreateRequest, EngineError> {
    let image_id: EngineImageId = "sha256:ab".parse().unwrap();
    let container = "c0ffee".parse().unwrap();
    let spec = ContainerSpec {
        name: "web_1_1_a",
        config,
        init_environment: &BTreeMap::from([("AT_INIT".into(), "yes".into())]),
        image_id: &image_id,
        network_container: Some(&container),
    };
    build(&spec, version, &Branding::default())
}

#[test]
fn defaults_are_left_to_the_engine() {
    let request = request(&service(), V1_41).unwrap();
    assert_eq!(request.warnings, [""; 0]);
    assert!(request.joins.is_empty());
    let expected = expect![[r#"
        {
          "Env": [
            "AT_INIT=yes"
          ],
          "HostConfig": {
            "IpcMode": "shareable",
            "NetworkMode": "1_default",
            "RestartPolicy": {
              "MaximumRetryCount": 0,
              "Name": "always"
            },
            "ShmSize": 67108864
          },
          "Image": "sha256:ab",
          "Labels": {
            "io.platform.image-reference": "shop/web:1"
          },
          "NetworkingConfig": {
            "EndpointsConfig": {
              "1_default": {
                "Aliases": [
                  "web"
                ]
              }
            }
          },
          "StopTimeout": 10,
          "Tty": true
        }"#]];
    picture(&request.body, &expected);
}

/// Compares the body, with its fields sorted.
fn picture(body: &Value, expected: &Expect) {
    let sorted: BTreeMap<String, SortedJson> = serde_json::from_value(body.clone()).unwrap();
    expected.assert_eq(&serde_json::to_string_pretty(&sorted).unwrap());
}

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(untagged)]
enum SortedJson {
    Fields(BTreeMap<String, SortedJson>),
    Other(Value),
}

#[test]
fn settings_that_a_network_mode_excludes_are_left_out_with_a_warning() {
    let mut config = service();
    config.hostname = "shop".into();
    config.dns = vec!["192.0.2.1".into()];
    config.mac_address = "02:42:ac:11:00:99".into();
    config.ports = vec![PortMapping {
        host_ip: String::new(),
        host_port: Some(80),
        container_port: 80,
        protocol: Protocol::Tcp,
    }];
    for (mode, in_engine, warned) in [
        (NetworkMode::Bridge, "bridge", vec![]),
        (
            NetworkMode::Network("1_default".into()),
            "1_default",
            vec![],
        ),
        (
            NetworkMode::Host,
            "host",
            vec!["networks", "ports", "mac_address"],
        ),
        (
            NetworkMode::None,
            "none",
            vec!["networks", "ports", "mac_address"],
        ),
        (
            NetworkMode::Service("db".parse().unwrap()),
            "container:c0ffee",
            vec!["networks", "hostname", "ports", "dns", "mac_address"],
        ),
    ] {
        config.network_mode = mode;
        let request = request(&config, V1_41).unwrap();
        let found: Vec<_> = request
            .warnings
            .iter()
            .map(|warning| warning.split('`').nth(1).unwrap())
            .collect();
        assert_eq!(found, warned, "{in_engine}");
        assert_eq!(request.body["HostConfig"]["NetworkMode"], in_engine);
        let published = !request.body["HostConfig"]["PortBindings"].is_null();
        assert_eq!(published, !warned.contains(&"ports"), "{in_engine}");
    }
}

#[test]
fn networks_beside_the_first_are_joined_later_and_written_down() {
    let mut config = service();
    let back = NetworkAttachment {
        ipv4_address: Some("10.1.0.9".into()),
        ..Default::default()
    };
    config.networks.insert("1_back".into(), back.clone());
    let request = request(&config, V1_41).unwrap();
    assert_eq!(request.joins, BTreeMap::from([("1_back".to_owned(), back)]));
    let joined = request.body["NetworkingConfig"]["EndpointsConfig"]
        .as_object()
        .unwrap();
    assert_eq!(joined.keys().collect::<Vec<_>>(), ["1_default"]);
    let label = request.body["Labels"]["io.platform.joins"]
        .as_str()
        .unwrap();
    let written: BTreeMap<String, NetworkAttachment> = serde_json::from_str(label).unwrap();
    assert_eq!(written, request.joins);
}

#[test]
fn mac_address_goes_where_the_engines_version_reads_it() {
    let mut config = service();
    config.mac_address = "02:42:ac:11:00:99".into();
    let address = Value::from("02:42:ac:11:00:99");
    let old = request(&config, V1_41).unwrap().body;
    assert_eq!(old["MacAddress"], address);
    let new = request(&config, api_1(44)).unwrap().body;
    assert_eq!(new["MacAddress"], Value::Null);
    assert_eq!(
        new["NetworkingConfig"]["EndpointsConfig"]["1_default"]["MacAddress"],
        address
    );
}

#[test]
fn fields_that_the_engines_version_lacks_are_left_out_with_a_warning() {
    let mut config = service();
    config.init = Some(true);
    config.nano_cpus = 1;
    config.healthcheck = Some(Healthcheck {
        start_period: Some(1),
        ..Default::default()
    });
    let request = request(&config, api_1(24)).unwrap();
    let expected = expect![[r#"
        `stop_grace_period` is ignored: this Docker engine has API 1.24, and the field needs 1.25
        `healthcheck.start_period` is ignored: this Docker engine has API 1.24, and the field needs 1.29
        `cpus` is ignored: this Docker engine has API 1.24, and the field needs 1.25
        `init` is ignored: this Docker engine has API 1.24, and the field needs 1.25"#]];
    expected.assert_eq(&request.warnings.join("\n"));
    assert_eq!(request.body["HostConfig"]["Init"], Value::Null);
    assert_eq!(request.body["HostConfig"]["IpcMode"], Value::Null);
}

#[test]
fn a_graphics_processor_is_a_device_request() {
    let mut config = service();
    assert_eq!(
        request(&config, V1_41).unwrap().body["HostConfig"]["DeviceRequests"],
        Value::Null
    );
    config.gpu = true;
    let body = request(&config, V1_41).unwrap().body;
    assert_eq!(
        body["HostConfig"]["DeviceRequests"],
        serde_json::json!([{ "Count": 1, "Capabilities": [["gpu"]] }])
    );
}

#[test]
fn ports_and_mounts_take_the_engines_forms() {
    let mut config = service();
    let port = |host_ip: &str, host_port, container_port, protocol| PortMapping {
        host_ip: host_ip.into(),
        host_port,
        container_port,
        protocol,
    };
    config.ports = vec![
        port("", Some(80), 8080, Protocol::Tcp),
        port("127.0.0.1", Some(81), 8080, Protocol::Tcp),
        port("", None, 53, Protocol::Udp),
    ];
    let bind = |source: &str, read_only| Mount::Bind {
        source: source.into(),
        target: "/t".into(),
        read_only,
    };
    config.mounts = vec![bind("/a", false), bind("/b", true), bind("/c:d", false)];
    let body = request(&config, V1_41).unwrap().body;
    let host = &body["HostConfig"];
    assert_eq!(
        host["PortBindings"],
        serde_json::json!({
            "8080/tcp": [{ "HostPort": "80" }, { "HostIp": "127.0.0.1", "HostPort": "81" }],
            "53/udp": [{ "HostPort": "" }],
        })
    );
    assert_eq!(host["Binds"], serde_json::json!(["/a:/t:rw", "/b:/t:ro"]));
    assert_eq!(host["Mounts"][0]["Source"], "/c:d");
    assert_eq!(host["Mounts"][0]["Type"], "bind");
}

#[test]
fn reference_is_a_label_and_the_id_is_what_is_run() {
    let mut config = service();
    config.image = "r.io/shop/web@sha256:cd".parse::<ImageRef>().unwrap();
    let body = request(&config, V1_41).unwrap().body;
    assert_eq!(body["Image"], "sha256:ab");
    assert_eq!(
        body["Labels"]["io.platform.image-reference"],
        "r.io/shop/web@sha256:cd"
    );
}
