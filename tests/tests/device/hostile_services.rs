//! Hostile services, if it takes a whole device to see what they affect. What one process of a component can do to its
//! environment is tested in `host/engine/tests/wasm`.

use std::fs;

use serde_json::{Value, json};
use tests::{Supervisor, guest, service, services_of, target, until};

/// The memory of the supervisor that may remain in use after hostile services, in KiB: what the heap keeps for the next
/// ones.
const MAX_LEFT_KIB: u64 = 24 << 10;

/// Returns the supervisor's own memory according to the kernel, in KiB.
fn memory(device: &Supervisor) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", device.pid())).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    line.unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap()
}

/// Returns app 1 with a harmless service, app 2 with the hostile ones, and app 3 with one that changes with each word.
fn apps(hostile: &[&str], word: &str) -> Value {
    let component = guest("guest");
    let well = service("well", &component, &json!({ "command": ["tick"] }));
    let hostile: Vec<Value> = hostile
        .iter()
        .map(|what| {
            let more = json!({ "command": [what], "restart": "always" });
            service(what, &component, &more)
        })
        .collect();
    let other = json!({ "command": ["dump"], "environment": { "WORD": word } });
    let other = service("other", &component, &other);
    let mut all = target(1, &[well]);
    for (app, services) in [(2, hostile), (3, vec![other])] {
        let more = target(app, &services)["local"]["apps"][app.to_string()].take();
        all["local"]["apps"][app.to_string()] = more;
    }
    all
}

/// Returns the process of the service with this name.
fn process(device: &Supervisor, name: &str) -> i32 {
    let is_it = |pid: &i32| {
        let command = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        command.split('\0').any(|word| {
            let record = fs::read_to_string(format!("{word}/container.json")).unwrap_or_default();
            record.contains(&format!("\"{name}\""))
        })
    };
    services_of(device.state_dir())
        .into_iter()
        .find(is_it)
        .unwrap()
}

/// Waits until the service of app 3 has printed this word. Reads its own log: a reader of all services' lines loses some of
/// them, and is sent their number, while one service prints faster than it reads.
async fn until_changed(device: &Supervisor, word: &str) {
    let variable = format!("variable WORD={word}");
    let containers = device.state_dir().join("wasm/containers");
    until("the service of app 3 to print its new word", || async {
        let folders = fs::read_dir(&containers).into_iter().flatten().flatten();
        let logs = folders.map(|folder| fs::read_to_string(folder.path().join("log")));
        let mut logs = logs.filter_map(Result::ok);
        logs.any(|log| log.contains(&variable))
            .then_some(())
            .ok_or_else(|| (variable.clone(), device.log()))
    })
    .await;
}

/// One row for each word of "a service that traps, loops, floods or blocks costs the others nothing": the others are
/// the API, plugins, other services, and updates of other apps.
#[tokio::test]
async fn a_service_that_traps_loops_floods_or_blocks_costs_the_others_nothing() {
    let device = Supervisor::on_wasm().start().await;
    let mut logs = device.read_logs().await;
    device.set_target(&apps(&[], "nothing")).await;
    until_changed(&device, "nothing").await;
    logs.until_message("tick ").await;
    let well = process(&device, "well");
    let before = memory(&device);
    for (word, hostile) in [
        ("traps", &["trap"][..]),
        ("loops", &["spin"]),
        ("floods", &["flood", "fill-memory"]),
        // It ignores the signal to end.
        ("blocks", &["ignore-stop"]),
    ] {
        device.set_target(&apps(hostile, word)).await;
        // An update of another app succeeds at the same time.
        until_changed(&device, word).await;
        until("the hostile services to be there", || async {
            let state = device.json("/v2/applications/state").await.to_string();
            if hostile.iter().all(|name| state.contains(name)) {
                Ok(())
            } else {
                Err(state)
            }
        })
        .await;
        for _ in 0..10 {
            for path in [
                "/ping",
                "/v1/device",
                "/v2/local/device-info",
                "/v2/device/name",
            ] {
                let answer = device.get(path).await;
                assert_eq!(answer.status, 200, "{word}: {path}: {answer:?}");
            }
        }
        logs.until_message("tick ").await;
        assert_eq!(process(&device, "well"), well, "{word}: it was disturbed");
    }
    device.set_target(&apps(&[], "over")).await;
    until_changed(&device, "over").await;
    until("the hostile services to be gone", || async {
        let left = services_of(device.state_dir()).len();
        let held = memory(&device).saturating_sub(before);
        if left == 2 && held < MAX_LEFT_KIB {
            Ok(())
        } else {
            Err(format!("{left} services, {held} KiB more than before"))
        }
    })
    .await;
    assert_eq!(process(&device, "well"), well);
}
