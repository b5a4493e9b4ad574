//! What users do with a device through `fleet`: the command line, the cloud and the device are the real ones.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tests::{DEADLINE, FleetCloud, Supervisor, until};

use crate::with_its_cloud::{BOARD, deploy, known, until_runs};

/// A time long before requests without an answer would end.
const AT_ONCE: Duration = Duration::from_secs(4);

/// A cloud, and a device of its fleet. It runs a release whose service has these words as its command.
struct Stage {
    cloud: FleetCloud,
    device: Supervisor,
    home: tempfile::TempDir,
}

impl Stage {
    async fn with(command: &[&str]) -> Option<Self> {
        let Ok(registry) = std::env::var("SUPERVISOR_TEST_REGISTRY") else {
            println!("SKIPPED: SUPERVISOR_TEST_REGISTRY is not set");
            return None;
        };
        let cloud = FleetCloud::start(&registry).await;
        let fleet = cloud.fleet("pump", BOARD).await;
        let release = deploy(&cloud, "1.0.0", command);
        let config = cloud.config_json(fleet, BOARD).await;
        let device = Supervisor::on_wasm().config_json(config).start().await;
        until_runs(&cloud, &device, release).await;
        let row = known(&cloud).await;
        let named = ["device", "rename", row["uuid"].as_str().unwrap(), "west"];
        let home = tempfile::tempdir().unwrap();
        let _ = cloud.command_line(home.path(), &named);
        Some(Stage {
            cloud,
            device,
            home,
        })
    }

    /// Runs a command that has to succeed, and returns its output.
    fn done(&self, words: &[&str]) -> String {
        let output = self.cloud.command_line(self.home.path(), words);
        String::from_utf8(output.stdout).unwrap()
    }

    /// The same for commands that print JSON.
    fn json(&self, words: &[&str]) -> Value {
        let text = self.done(&[words, &["--json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{words:?}: {error}: {text}"))
    }

    /// Runs a command that has to end with this code, and returns its error message.
    fn refused(&self, code: i32, words: &[&str]) -> String {
        let output = self.cloud.command(self.home.path(), words).output();
        let output = output.unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{words:?}: {stderr}");
        assert!(output.stdout.is_empty(), "{words:?}");
        stderr
    }

    async fn container(&self) -> Value {
        self.device.json("/v2/containerId").await["services"]["main"].take()
    }

    async fn status_of_main(&self) -> String {
        let state = self.device.json("/v2/state/status").await;
        state["containers"][0]["status"].to_string()
    }

    async fn until_main_is(&self, status: &str) {
        until("the service to be so", || async {
            match self.status_of_main().await {
                found if found.contains(status) => Ok(()),
                found => Err((found, self.device.log())),
            }
        })
        .await;
    }
}

#[tokio::test]
async fn a_device_carries_out_commands() {
    let Some(stage) = Stage::with(&["wait"]).await else {
        return;
    };
    for (words, ending) in [
        (["ping", "west"], "answers"),
        (["blink", "west"], "blinks"),
        (["update", "west"], "checks for its target"),
    ] {
        let output = stage.done(&[&["device"], &words[..]].concat());
        assert!(
            output.starts_with("west (") && output.trim().ends_with(ending),
            "{output}"
        );
        let answer = stage.json(&[&["device"], &words[..]].concat());
        assert!(answer["status"].as_u64().unwrap() < 300, "{answer}");
    }

    // Its services, one and all of them.
    let before = stage.container().await;
    stage.done(&["device", "restart", "west", "--service", "main"]);
    let again = stage.container().await;
    assert!(again.is_string() && again != before, "{again}");
    stage.done(&["device", "restart", "west"]);
    assert_ne!(stage.container().await, again);
    stage.done(&["device", "stop", "west", "-s", "main"]);
    stage.until_main_is("exited").await;
    stage.done(&["device", "start", "west", "-s", "main"]);
    stage.until_main_is("Running").await;
    stage.done(&["device", "purge", "west", "--yes"]);
    stage.until_main_is("Running").await;
    let message = stage.refused(2, &["device", "purge", "west"]);
    assert!(message.contains("--yes"), "{message}");
    let message = stage.refused(4, &["device", "restart", "west", "-s", "none"]);
    assert!(
        message.contains("the fleet has no service `none`"),
        "{message}"
    );
    assert!(message.contains("it has main"), "{message}");

    // A lock prevents it, unless overridden.
    let lock = stage.device.request("PUT", "/v3/locks/1/main");
    let lock = lock.json(&json!({ "ttl": 600, "reason": "at work" }));
    assert_eq!(stage.device.send(lock).await.status, 200);
    let message = stage.refused(1, &["device", "restart", "west"]);
    assert!(
        message.contains("an update lock holds the device west"),
        "{message}"
    );
    assert!(message.contains("`--force` overrides"), "{message}");
    stage.done(&["device", "restart", "west", "--force"]);

    // The host; that of the tests is not rebooted.
    stage.done(&["device", "reboot", "west", "--force"]);
    until("the reboot", || async {
        let log = stage.device.log();
        if log.contains("reboot") {
            Ok(())
        } else {
            Err(log)
        }
    })
    .await;
}

#[tokio::test]
async fn the_command_line_reports_a_disconnected_device_and_the_cloud_stops_at_once_despite_a_log_reader()
 {
    let Some(mut stage) = Stage::with(&["tick"]).await else {
        return;
    };
    let log = LogFollower::begin(&stage);
    log.until_tick(1);
    let took = stage.cloud.terminate();
    assert!(took < AT_ONCE, "{took:?}");

    // No line that was printed in between is missing, and none is repeated.
    stage.cloud.start_again();
    let last = log.last() + 30;
    log.until_tick(last);
    let seen = log.seen();
    let expected: Vec<u64> = (seen[0]..).take(seen.len()).collect();
    assert_eq!(seen, expected);
    drop(log);

    stage.device.terminate().await;
    until("the cloud to know", || async {
        let output = stage
            .cloud
            .command(stage.home.path(), &["device", "ping", "west"]);
        let output = { output }.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        if stderr.contains("the device west (") && stderr.contains("is not connected") {
            Ok(())
        } else {
            Err(stderr)
        }
    })
    .await;
}

#[tokio::test]
async fn a_log_is_read_with_the_names_of_services() {
    let Some(stage) = Stage::with(&["print-and-wait", "a\u{1b}[2Jb", "second"]).await else {
        return;
    };
    let all = || stage.done(&["logs", "west"]);
    until("the lines", || async {
        let all = all();
        if all.contains("main: waiting") {
            Ok(())
        } else {
            Err(all)
        }
    })
    .await;
    let all = all();
    assert!(all.contains(" main: a[2Jb\n"), "{all}");
    assert!(all.contains(" supervisor: Started service 'main"), "{all}");
    let of_main = stage.done(&["logs", "west", "--service", "main"]);
    assert_eq!(of_main.lines().count(), 3, "{of_main}");
    let last = stage.done(&["logs", "west", "--service", "main", "--tail", "1", "--json"]);
    let last: Value = serde_json::from_str(&last).unwrap();
    assert_eq!(
        (&last["message"], &last["service"], &last["stderr"]),
        (&json!("waiting"), &json!("main"), &json!(false))
    );
    let message = stage.refused(4, &["logs", "west", "--service", "none"]);
    assert!(message.contains("main"), "{message}");
}

/// A log that is being followed.
struct LogFollower {
    process: Child,
    lines: Receiver<u64>,
    seen: std::cell::RefCell<Vec<u64>>,
}

impl LogFollower {
    fn begin(stage: &Stage) -> Self {
        let words = ["logs", "west", "--follow", "--tail", "0"];
        let mut command = stage.cloud.command(stage.home.path(), &words);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if let Some((_, number)) = line.split_once(" main: tick ")
                    && sender.send(number.parse().unwrap()).is_err()
                {
                    return;
                }
            }
        });
        LogFollower {
            process,
            lines,
            seen: std::cell::RefCell::default(),
        }
    }

    fn until_tick(&self, number: u64) {
        let deadline = Instant::now() + DEADLINE;
        while self.last() < number {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left);
            let line = line.unwrap_or_else(|error| panic!("{error}: {:?}", self.seen));
            self.seen.borrow_mut().push(line);
        }
    }

    fn last(&self) -> u64 {
        self.seen.borrow().last().copied().unwrap_or(0)
    }

    fn seen(&self) -> Vec<u64> {
        self.seen.borrow().clone()
    }
}

impl Drop for LogFollower {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
