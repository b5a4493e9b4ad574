//! Hostile callers: their requests cost the device no more than its limits allow.

use serde_json::json;
use tests::{Supervisor, until};

/// The memory for a body of 10 MiB and 50,000 values while it is read, with some margin, in KiB. Without the limit on
/// values it was a hundred times the size of the body.
const MAX_PEAK_KIB: u64 = 64 << 10;
/// The memory that may remain in use afterwards, in KiB, including other activity of the device.
const MAX_LEFT_KIB: u64 = 20 << 10;

const TARGET: &str = "/v2/local/target-state";

/// Returns a field of the kernel's data about the supervisor's memory, in KiB.
fn memory(device: &Supervisor, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", device.pid())).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap()
}

/// Returns repetitions of `piece`, in an array or in `around`.
fn bomb(around: (&str, &str), piece: &str, length: usize) -> String {
    let pieces = (length - around.0.len() - around.1.len()) / piece.len();
    let mut body = around.0.to_owned() + &piece.repeat(pieces);
    // Without the last comma.
    body.pop();
    body + around.1
}

#[tokio::test]
async fn json_bombs_take_little_memory_and_leave_none() {
    let device = Supervisor::on_wasm().start().await;
    let empty = json!({"local": {"apps": {}}});
    device.set_target(&empty).await;
    device.until_applied().await;
    // The answer comes when plugins are loaded.
    device.get("/v3/plugins").await;
    let before = memory(&device, "RssAnon");
    let peak_before = memory(&device, "VmHWM");
    let length = 10 << 20;
    let bombs = [
        bomb(("[", "]"), "{\"\":0},", length),
        bomb(("{\"local\":[", "]}"), "[],", length),
        bomb(("{\"local\":{\"apps\":", "}}"), "{\"a\":", length),
        bomb(("[", "]"), "0,", length),
        // The maximum number of values, and the maximum length.
        bomb(
            ("{\"local\":[", "]}"),
            &format!("{{\"{}\":0}},", "x".repeat(400)),
            length,
        ),
    ];
    for path in [TARGET, "/v1/update", "/v1/restart"] {
        for bomb in &bombs {
            // Several at the same time, which take turns.
            let posts = (0..3).map(|_| {
                let request = device
                    .request("POST", path)
                    .header("content-type", "application/json")
                    .body(bomb.clone());
                device.send(request)
            });
            for answer in futures::future::join_all(posts).await {
                assert!(
                    matches!(answer.status, 400 | 413),
                    "{path} {bomb:.20}: {answer:?}"
                );
            }
        }
    }
    let peak = memory(&device, "VmHWM") - peak_before;
    assert!(peak < MAX_PEAK_KIB, "{peak} KiB more at its peak");
    until("the memory to be given back", || async {
        let left = memory(&device, "RssAnon").saturating_sub(before);
        if left < MAX_LEFT_KIB {
            Ok(())
        } else {
            Err(format!("{left} KiB are still held"))
        }
    })
    .await;
    device.set_target(&empty).await;
}
