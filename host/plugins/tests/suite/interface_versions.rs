//! Plugins that were built for an older version of the interface keep working: their binaries are in
//! `tests/compatibility`.

mod capabilities;

use std::fs;

use bytes::Bytes;
use http::StatusCode;
use http_body_util::{BodyExt as _, Empty};
use plugins::{BootSetting, CallerScope, INTERFACE};
use tests::{kept_plugin, kept_plugins, repository};

use crate::fixture::{ALL, Fixture, grant_all, led, manifest, setup, shown, with_section};

/// The binaries for each version, the oldest first: the guest that imports and exports all worlds, which has no
/// manifest, and plugins as their authors built them with the SDK of that time.
const VERSIONS: [(&str, &[&str]); 5] = [
    (
        "1.0",
        &["all_worlds", "boot_config_txt", "greeter", "led_blink"],
    ),
    ("1.1", &["all_worlds", "greeter"]),
    ("1.2", &["all_worlds", "greeter"]),
    ("1.3", &["all_worlds", "greeter"]),
    (
        "1.4",
        &[
            "acme_rails",
            "all_worlds",
            "boot_config_txt",
            "door_relay",
            "greeter",
            "hello_c",
            "hello_go",
            "hello_javascript",
            "hello_python",
            "hello_typescript",
            "hello_wasi_http",
            "host_config",
            "line_meter",
            "rail_panel",
            "rauc_update",
            "release_check",
            "site_panel",
            "tags",
            "tank_gauge",
            "update_hold",
            "weather",
        ],
    ),
];
/// The first version with `set-for` and `compare-and-set` in the interface `store`.
const LIFETIMES_SINCE: usize = 3;
/// The first version with plugins in languages other than Rust.
const LANGUAGES_SINCE: usize = 4;
/// What is kept at least of each version since then.
const LANGUAGES: [&str; 5] = [
    "hello_c",
    "hello_go",
    "hello_javascript",
    "hello_python",
    "hello_typescript",
];

/// Otherwise nothing loaded here would be of the version that it stands for.
#[test]
fn binaries_of_each_version_are_kept_and_import_no_later_one() {
    assert_eq!(
        VERSIONS.len() as u64,
        INTERFACE.minor + 1,
        "keep binaries of {INTERFACE} as well"
    );
    for (minor, (version, names)) in VERSIONS.iter().enumerate() {
        assert_eq!(*version, format!("1.{minor}"));
        assert_eq!(kept_plugins(version), *names, "{version}");
        if minor >= LANGUAGES_SINCE {
            let has_all = LANGUAGES.iter().all(|name| names.contains(name));
            assert!(has_all, "{version}: {names:?}");
        }
        for name in *names {
            let binary = kept_plugin(version, name);
            let imports = |minor: usize| {
                let text = format!("@1.{minor}.0");
                binary
                    .windows(text.len())
                    .any(|part| part == text.as_bytes())
            };
            // One of them does not use our interface.
            if *name != "hello_wasi_http" {
                assert!(imports(minor), "{version} {name}");
            }
            for later in minor + 1..=VERSIONS.len() {
                assert!(!imports(later), "{version} {name}: 1.{later}");
            }
        }
    }
}

/// Otherwise a later device could break an interface that no kept plugin uses.
#[test]
fn binaries_of_the_newest_version_use_each_of_its_interfaces() {
    let (version, names) = VERSIONS.last().unwrap();
    let binaries: Vec<_> = names
        .iter()
        .map(|name| kept_plugin(version, name))
        .collect();
    let mut interfaces = 0;
    for file in fs::read_dir(repository().join("wit")).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        // A file for each interface, and one for all worlds.
        if path.extension().is_none_or(|extension| extension != "wit") || name == "worlds" {
            continue;
        }
        interfaces += 1;
        let text = format!("platform:supervisor/{name}@{version}.0");
        let is_used = |binary: &Vec<u8>| {
            let mut parts = binary.windows(text.len());
            parts.any(|part| part == text.as_bytes())
        };
        assert!(binaries.iter().any(is_used), "no kept plugin uses `{text}`");
    }
    assert!(interfaces > 20, "{interfaces}");
}

/// Checks each answer of the plugin `old` that is not a failure.
async fn assert_answers(device: &Fixture, version: &str, expected: &[(&str, &str)]) {
    for (path, expected) in expected {
        let (status, body) = device.get(&format!("/v3/old/{path}")).await;
        assert_eq!(
            (status, body.as_str()),
            (StatusCode::OK, *expected),
            "{version} {path}"
        );
    }
}

#[tokio::test]
async fn a_component_of_an_earlier_version_calls_what_it_imports_and_is_called() {
    for (minor, (version, names)) in VERSIONS.into_iter().enumerate() {
        assert!(names.contains(&"all_worlds"), "{version}");
        let setup = setup();
        led(&setup.root.path().join("host/sys/class/leds"), "ACT");
        let provides = "provides = [\"proxy-redirector\", \"identify\"]";
        let manifest = manifest("old", &format!("{ALL}\n{provides}")).replace(
            "interface = \"1.0.0\"",
            &format!("interface = \"{version}.0\""),
        );
        let file = with_section(
            &kept_plugin(version, "all_worlds"),
            "platform:manifest",
            manifest.as_bytes(),
        );
        let device = setup
            .file("old.wasm", &file)
            .policy(&grant_all(&["old"]))
            .config("[old]\nidentify-fails = true\n")
            .start()
            .await;
        let interface = device.report("old").interface;
        assert_eq!(interface, Some(format!("{version}.0")));
        let answers = [
            ("hello", "hello"),
            ("config", "{\"identify-fails\":true}"),
            (
                "device",
                "0123456789abcdef0123456789abcdef kitchen acme-board2 aarch64",
            ),
            ("leds", "ACT"),
            ("light?ms=1", "lit at most 100"),
            ("store?set=3", "kept"),
            ("store", "Some(3) [\"k\"]"),
            ("sleep?ms=1", "slept"),
        ];
        assert_answers(&device, version, &answers).await;
        if version != "1.0" {
            let caller = [("caller", "CallerScope::DeviceKey None")];
            assert_answers(&device, version, &caller).await;
        }
        if minor >= LIFETIMES_SINCE {
            let answers = [
                ("store?add=carefully", "1"),
                ("store?add=carefully", "2"),
                ("store?for=3600000", "kept for a time"),
                ("store", "Some(1) [\"count\", \"k\"]"),
                ("store?for=0", "kept for a time"),
                ("store", "None [\"count\"]"),
            ];
            assert_answers(&device, version, &answers).await;
        }
        // It calls itself for what it provides.
        let (status, body) = device.get("/v3/old/proxy").await;
        assert_eq!(status, StatusCode::OK, "{version}: {body}");
        assert!(body.contains("identify-fails"), "{version}: {body}");
        let (status, body) = device.get("/v3/old/identify").await;
        assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR, "{version}");
        assert!(body.contains("FORGED"), "{version}: {body}");
        // Bodies that pass through it as streams: a request's and an answer's.
        let long = vec![b'x'; 100_000];
        let (status, body) = device.post("/v3/old/echo", long.clone()).await;
        assert_eq!((status, body.len()), (StatusCode::OK, long.len()));
        let (status, _) = device.get("/v3/old/panic").await;
        assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR, "{version}");
    }
}

#[tokio::test]
async fn plugins_built_with_the_sdk_of_an_earlier_version_go_on() {
    let mut policy =
        "[plugins.greeter]\ngrants = [\"device\"]\n[plugins.led-blink]\ngrants = [\"led\"]\n\
                      [plugins.boot-config-txt]\ngrants = [\"files\"]\n\
                      files = [{ host = \"mnt/boot\", guest = \"/boot\", write = true }]\n\
                      [plugins.hello-wasi-http]\ngrants = [\"clock\"]\n"
            .to_owned();
    for name in LANGUAGES {
        let name = name.replace('_', "-");
        policy += &format!("[plugins.{name}]\ngrants = [\"store\"]\n");
    }
    for (version, names) in VERSIONS {
        let setup = setup();
        let act = led(&setup.root.path().join("host/sys/class/leds"), "ACT");
        let boot = setup.root.path().join("host/mnt/boot");
        fs::create_dir_all(&boot).unwrap();
        fs::write(boot.join("config.txt"), "gpu_mem=64\n").unwrap();
        let is_called_here =
            |name: &&&str| **name != "all_worlds" && !capabilities::PLUGINS.contains(*name);
        let plugins: Vec<_> = names.iter().filter(is_called_here).collect();
        let mut setup = setup.policy(&policy).board("raspberrypi4-64");
        for name in &plugins {
            setup = setup.file(&format!("{name}.wasm"), &kept_plugin(version, name));
        }
        let device = setup.start().await;
        for name in &plugins {
            match **name {
                "greeter" => {
                    let (status, body) = device.get("/v3/greet/Ada?greeting=Salut").await;
                    let greeting = "{\"greeting\":\"Salut, Ada! I am kitchen.\"}";
                    assert_eq!((status, body.as_str()), (StatusCode::OK, greeting));
                    let (status, body) = device.get("/v3/greet/Ada").await;
                    assert_eq!(status, StatusCode::BAD_REQUEST, "{version}: {body}");
                }
                "led_blink" => {
                    device.plugins.identify(CallerScope::DeviceKey);
                    device
                        .until("it blinks", |_| shown(&act) == "100 none")
                        .await;
                }
                "boot_config_txt" => {
                    let settings = device.plugins.boot_settings().await.unwrap();
                    let memory = BootSetting {
                        name: "HOST_CONFIG_gpu_mem".to_owned(),
                        value: "64".to_owned(),
                    };
                    assert_eq!(settings, [memory]);
                }
                "hello_wasi_http" => {
                    let (status, body) = device.get("/v3/hello-wasi-http").await;
                    assert_eq!(
                        (status, body.as_str()),
                        (StatusCode::OK, "Hello, wasi:http!\n")
                    );
                }
                hello if LANGUAGES.contains(&hello) => greets_and_streams(&device, hello).await,
                other => panic!("{version}: nothing calls `{other}`"),
            }
            let report = device.report(&name.replace('_', "-"));
            let interface = format!("{version}.0");
            assert_eq!(report.interface, Some(interface), "{name}");
            assert_eq!((report.calls > 0, report.failures), (true, 0), "{name}");
        }
    }
}

/// What the examples do in each language: they count in the store, wait, stream, and answer with errors.
async fn greets_and_streams(device: &Fixture, name: &str) {
    let path = format!("/v3/{}/Ada", name.replace('_', "-"));
    for calls in [1, 2] {
        let (status, body) = device.get(&path).await;
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        let expected = serde_json::json!({ "greeting": "Hello, Ada!", "calls": calls });
        assert_eq!((status, body), (StatusCode::OK, expected), "{name}");
    }
    let (status, body) = device.get(&format!("{path}/countdown?seconds=1")).await;
    assert_eq!(
        (status, body.as_str()),
        (StatusCode::OK, "1\nHello, Ada!\n"),
        "{name}"
    );
    let (status, body) = device.get(&format!("{path}?language=de")).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "{name}: {body}");
}

/// A component in JavaScript has three memories: the engine's, and those of two components that replace imports.
#[cfg(target_pointer_width = "64")]
#[tokio::test]
async fn a_call_takes_one_place_however_many_memories_its_component_has() {
    let device = setup()
        .file("hello.wasm", &kept_plugin("1.4", "hello_javascript"))
        .policy("[plugins.hello-javascript]\ngrants = [\"store\"]\n")
        .slots(4)
        .start()
        .await;
    let concurrency = device
        .report("hello-javascript")
        .limits
        .unwrap()
        .concurrency;
    assert_eq!(concurrency, 2, "half of the places");

    let mut streams = Vec::new();
    for name in ["Ada", "Grace"] {
        let path = format!("/v3/hello-javascript/{name}/countdown?seconds=1000");
        let request = http::Request::get(path)
            .body(Empty::<Bytes>::new())
            .unwrap();
        let answer = device.call(request).await;
        assert_eq!(answer.status(), StatusCode::OK, "{name}");
        let mut body = answer.into_body();
        let first = body.frame().await.unwrap().unwrap();
        assert_eq!(first.into_data().unwrap(), "1000\n", "{name}");
        streams.push(body);
    }
}
