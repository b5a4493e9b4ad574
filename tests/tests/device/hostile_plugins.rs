//! Hostile plugins, if it takes a whole device to see what they affect; and what they learn about their callers. What
//! they can do within the plugin runtime is tested in `host/plugins`.

use std::fs;

use serde_json::json;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use tests::{
    GUEST_CAPABILITIES, Supervisor, children_of, distribution, guest, guest_plugin, kept_plugin,
    service, target, until,
};

/// A device with the component that does what its path names, as the plugin `acme`, which the policy pins.
async fn device_with(component: &[u8], configuration: &str) -> (Supervisor, TempDir) {
    let file = guest_plugin(
        component,
        "name = \"acme\"\nversion = \"1.0.0\"\nprovides = [\"identify\"]\n",
        "[[routes]]\nmethod = \"GET\"\npath = \"/v3/acme/:what\"\n",
    );
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("plugins")).unwrap();
    fs::write(folder.path().join("plugins/acme.wasm"), &file).unwrap();
    let stock = distribution().join("plugins/device_info.wasm");
    fs::copy(stock, folder.path().join("plugins/device_info.wasm")).unwrap();
    let policy = format!(
        "[plugins.acme]\nsha256 = [\"{}\"]\ngrants = {GUEST_CAPABILITIES:?}\nroutes = [\"/v3/acme/*\"]\n\
         provides = [\"identify\"]\n[plugins.device-info]\ngrants = [\"device\"]\n",
        hex::encode(Sha256::digest(&file))
    );
    fs::write(folder.path().join("policy.toml"), policy).unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let device = Supervisor::on_wasm()
        .argument("--plugin-dir")
        .argument(path("plugins"))
        .argument("--policy")
        .argument(path("policy.toml"))
        .configuration(configuration)
        .start()
        .await;
    (device, folder)
}

fn component() -> Vec<u8> {
    fs::read(guest("plugin_guests")).unwrap()
}

/// Each way in which a plugin's text gets into the log: lines that it writes and prints, a panic, the names of its
/// functions in a trace, an error as its answer, an error of an action.
#[tokio::test]
async fn no_text_of_a_plugin_is_a_line_of_the_log_and_it_writes_no_more_than_its_share() {
    // Its functions have names with a line break, and so has the file of a panic.
    let mut forger = component();
    let (name, forged) = (b"misbehave", b"\nFORGED: ");
    let mut count = 0;
    for at in 0..forger.len() - name.len() {
        if forger[at..].starts_with(name) {
            forger[at..at + name.len()].copy_from_slice(forged);
            count += 1;
        }
    }
    assert!(count > 1, "the component has names of functions");
    let (device, _folder) =
        device_with(&forger, "[plugins.acme]\nwhat = \"identify-fails\"\n").await;
    for (what, status) in [
        ("panic", 500),
        ("stack", 500),
        ("long-error", 400),
        ("odd-error", 500),
        ("status-0", 502),
        ("bad-header", 502),
    ] {
        let answer = device.get(&format!("/v3/acme/{what}")).await;
        assert_eq!(answer.status, status, "{what}: {answer:?}");
        assert!(
            answer.text.len() < 32 << 10,
            "{what}: {}",
            answer.text.len()
        );
    }
    // Lines by the thousand: each call may write 100 lines, and all of them together only the plugin's limit.
    for _ in 0..20 {
        assert_eq!(device.get("/v3/acme/log").await.status, 200);
    }
    let blink = device.post("/v1/blink", &json!({})).await;
    assert_eq!(blink.status, 200);
    until("the failure of `identify` to be logged", || async {
        let log = device.log();
        if log.contains("`identify` failed") {
            Ok(())
        } else {
            Err(log)
        }
    })
    .await;
    let log = device.log();
    assert!(log.contains("FORGED"), "what it says is in the log");
    let mut by_the_plugin = 0;
    for line in log.lines() {
        assert!(line.len() < 6 << 10, "a line of {} bytes", line.len());
        let begins_with_a_time = line.starts_with("20");
        assert!(begins_with_a_time, "no line of the supervisor's: {line}");
        by_the_plugin += usize::from(line.contains("line ") || line.contains("printed "));
    }
    // Twenty calls of 2,000 lines each.
    assert!((100..1_000).contains(&by_the_plugin), "{by_the_plugin}");
    assert!(log.contains("lines of this call were not written"), "{log}");
}

/// The memory that may remain in use after hostile calls, in KiB, including other activity of the device.
const MAX_LEFT_KIB: u64 = 24 << 10;

/// Returns the supervisor's own memory and that of its children according to the kernel, in KiB.
fn memory(device: &Supervisor) -> u64 {
    let processes = std::iter::once(device.pid()).chain(children_of(device.pid()));
    let anonymous = |pid: i32| -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let mut lines = status.lines();
        let line = lines.find_map(|line| line.strip_prefix("RssAnon:"))?;
        line.trim().trim_end_matches(" kB").parse().ok()
    };
    processes.filter_map(anonymous).sum()
}

/// One row for each word of "a plugin that traps, loops, floods or blocks costs the others nothing": the others are the
/// API, other plugins, services and their updates.
#[tokio::test]
async fn a_plugin_that_traps_loops_floods_or_blocks_costs_the_others_nothing() {
    let (device, _folder) = device_with(&component(), "").await;
    let others = [
        "/ping",
        "/v1/device",
        "/v2/local/device-info",
        "/v2/device/name",
    ];
    // Once, so that everything that the first call creates exists.
    for path in others.iter().chain(&["/v3/acme/hello"]) {
        assert_eq!(device.get(path).await.status, 200, "{path}");
    }
    let mut logs = device.read_logs().await;
    let mut update = async |word: &str| {
        let more = json!({ "command": ["dump"], "environment": { "WORD": word } });
        let news = service("news", &guest("guest"), &more);
        device.set_target(&target(1, &[news])).await;
        logs.until_message(&format!("variable WORD={word}")).await;
    };
    update("nothing").await;
    let before = memory(&device);
    for (word, calls) in [
        ("traps", &["panic", "stack", "exit", "trap-in-stream"][..]),
        ("loops", &["spin", "spin-in-stream", "many-tasks"]),
        (
            "floods",
            &[
                "memory",
                "huge-body",
                "many-headers",
                "huge-header",
                "long-error",
                "log",
            ],
        ),
        ("blocks", &["sleep?ms=600000", "hold?mib=8&ms=600000"]),
    ] {
        let mut hostile = Vec::new();
        for &what in calls {
            for _ in 0..4 {
                // On its own connection: one from another call may be closed at the moment when this call begins.
                let request = device.request("GET", &format!("/v3/acme/{what}"));
                let request = request.header("connection", "close").build().unwrap();
                let client = tests::client();
                hostile.push(tokio::spawn(async move {
                    // This test only checks that an answer arrives; another test checks its content. A stream that has
                    // begun has to end, even if it is incomplete.
                    let answer = client
                        .execute(request)
                        .await
                        .map_err(|error| (what, error))?;
                    match answer.bytes().await {
                        Err(error) if error.is_timeout() => Err((what, error)),
                        _ => Ok(()),
                    }
                }));
            }
        }
        for _ in 0..10 {
            for path in others {
                let answer = device.get(path).await;
                assert_eq!(answer.status, 200, "{word}: {path}: {answer:?}");
            }
        }
        update(word).await;
        for call in hostile {
            let answered: Result<(), (&str, reqwest::Error)> = call.await.unwrap();
            if let Err((what, error)) = answered {
                panic!(
                    "{word}: `{what}` got no answer: {error:?}\n{}",
                    device.log()
                );
            }
        }
        assert_eq!(device.get("/v3/acme/hello").await.text, "hello", "{word}");
    }
    until("the memory to be given back", || async {
        let left = memory(&device).saturating_sub(before);
        if left < MAX_LEFT_KIB {
            Ok(())
        } else {
            Err(format!("{left} KiB are still held"))
        }
    })
    .await;
    let report = device.json("/v3/plugins").await;
    let plugins = report["plugins"].as_array().unwrap().iter();
    for plugin in plugins {
        let is_the_offender = plugin["name"] == "acme";
        assert_eq!(plugin["failures"] != 0, is_the_offender, "{plugin}");
    }
}

#[tokio::test]
async fn a_line_about_a_call_says_of_which_plugin_and_route() {
    let (device, _folder) = device_with(&component(), "").await;
    assert_eq!(device.get("/v3/acme/panic").await.status, 500);
    let log = device.log();
    let line = log
        .lines()
        .find(|line| line.contains("plugin `acme` failed"))
        .unwrap_or_else(|| panic!("nothing is logged: {log}"));
    for part in [
        "plugin_call",
        "plugin=\"acme\"",
        "method=\"GET\"",
        "route=\"/v3/acme/:what\"",
    ] {
        assert!(line.contains(part), "no {part} in {line}");
    }
}

/// Returns the key of the service `web` of app 1, taken from its output.
async fn service_key(device: &Supervisor) -> String {
    let mut logs = device.read_logs().await;
    let more = json!({
        "command": ["dump"],
        "labels": {"io.platform.features.supervisor-api": "1"},
    });
    let web = service("web", &guest("guest"), &more);
    device.set_target(&target(1, &[web])).await;
    let prefix = "variable PLATFORM_SUPERVISOR_API_KEY=";
    let line = logs.until_message(prefix).await;
    line["message"].as_str().unwrap()[prefix.len()..].to_owned()
}

async fn caller(device: &Supervisor, key: Option<&str>) -> String {
    let request = device.request_without_key("GET", "/v3/acme/caller");
    let request = match key {
        Some(key) => request.bearer_auth(key),
        None => request,
    };
    let answer = device.send(request).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.text
}

#[tokio::test]
async fn a_plugin_learns_whose_key_a_request_has() {
    let (device, _folder) = device_with(&component(), "").await;
    let own = device.key().to_owned();
    assert_eq!(
        caller(&device, Some(&own)).await,
        "CallerScope::DeviceKey None"
    );
    let key = service_key(&device).await;
    assert_eq!(
        caller(&device, Some(&key)).await,
        "CallerScope::Service(AppService { app-id: 1, service: \"web\" }) None"
    );

    let (open, _folder) = device_with(&component(), "local_mode_auth = \"open\"").await;
    assert_eq!(caller(&open, None).await, "CallerScope::LocalMode None");
}

/// A plugin that was built for version 1.0 of the interface, on a device as shipped.
#[tokio::test]
async fn a_plugin_of_1_0_serves_on_a_device_of_today() {
    let (device, _folder) = device_with(&kept_plugin("1.0", "all_worlds"), "").await;
    assert_eq!(device.get("/v3/acme/hello").await.text, "hello");
    assert_eq!(
        device.get("/v3/acme/caller").await.status,
        404,
        "it has no such thing"
    );
}
