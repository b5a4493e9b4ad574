//! `run`: the plugin served over HTTP, and rebuilt when a file is saved.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use reqwest::Client;
use serde_json::Value;
use tests::{guest, until};

use crate::author::{Author, RunningCommand};
use crate::languages::can_build;

#[tokio::test]
async fn a_saved_file_is_served_and_a_broken_one_leaves_the_version_before() {
    let author = Author::new();
    author.new_project("rails");
    // The first build may take longer than a test waits for a line.
    author.run_in("rails", "build").succeeds();
    let running = author.start_in("rails", "run --listen 127.0.0.1:0");
    let base = address(&running).await;
    let client = tests::client();
    let hello = format!("{base}/v3/rails/Ada");
    assert_eq!(
        get(&client, &hello).await,
        (200, "Hello, Ada! This is call 1.\n".to_owned())
    );
    running.until_printed("GET /v3/rails/Ada 200 in ").await;

    // No earlier run of this test has compiled this version.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let greeting = format!("Good day {}", now.as_nanos());
    author.edit("rails/src/lib.rs", "Hello, ", &format!("{greeting}, "));
    running
        .until_printed("compiling rails for this machine")
        .await;
    let text = until("the new version", || async {
        let (_, text) = get(&client, &hello).await;
        let is_new = text.starts_with(&format!("{greeting}, Ada! This is call "));
        if is_new { Ok(text) } else { Err(text) }
    })
    .await;
    // The plugin's stored data still exists.
    assert!(!text.contains("call 1."), "{text}");

    author.edit("rails/src/lib.rs", "async fn hello", "async fun hello");
    running.until_printed("error: ").await;
    assert!(get(&client, &hello).await.1.starts_with(&greeting));

    author.edit("rails/src/lib.rs", "async fun hello", "async fn hello");
    author.edit(
        "rails/src/lib.rs",
        "    Ok(format!",
        "    if count > 0 {\n        panic!(\"no such rail\");\n    }\n    Ok(format!",
    );
    until("the message of the panic", || async {
        let (status, text) = get(&client, &hello).await;
        if status == 500 && text.contains("no such rail") && text.contains("src/lib.rs:") {
            Ok(())
        } else {
            Err(text)
        }
    })
    .await;
    let (status, text) = get(&client, &format!("{base}/v1/device")).await;
    assert_eq!(status, 404);
    assert!(text.contains("this plugin has no such route"), "{text}");
}

#[tokio::test]
async fn the_start_shows_what_the_author_needs_and_no_lines_of_a_policy() {
    let author = Author::new();
    author.write("device.toml", "");
    let panel = guest("rail_panel").display().to_string();
    let running = author.start_in("", &format!("run {panel} --listen 127.0.0.1:0"));
    let base = address(&running).await;
    let started = running.printed();
    for shown in ["serving rail-panel 0.1.0", "  GET /v3/rail-panel"] {
        assert!(started.contains(shown), "{shown} in {started}");
    }
    for hidden in ["policy", "developer mode", "is loaded from", "compiled"] {
        assert!(!started.contains(hidden), "{hidden} in {started}");
    }

    let (status, text) = get(&tests::client(), &format!("{base}/v3/rail-panel")).await;
    assert_eq!(status, 503, "{text}");
    let note = "calls the action `acme-rails/list`, and `device.toml` has no answer for it: add";
    running.until_printed(note).await;
}

#[tokio::test]
async fn programs_get_an_event_in_each_line_of_standard_output() {
    let author = Author::new();
    let greeter = guest("greeter").display().to_string();
    let run = format!("supervisor-plugin run '{greeter}' --json --listen 127.0.0.1:0 > events");
    author.write("events", "");
    let mut running = author.start_shell(&run, &[]);
    let event = async |name: &str| {
        until(name, || async {
            let events = author.read("events");
            let mut events = events.lines().map(serde_json::from_str::<Value>);
            let event = events.find_map(|event| event.ok().filter(|event| event["event"] == name));
            event.ok_or_else(|| author.read("events"))
        })
        .await
    };
    let address = event("listening").await["address"].clone();
    let serving = event("serving").await;
    assert_eq!(serving["name"], "greeter");
    assert_eq!(serving["routes"][0], "GET /v3/greet/:name");
    let path = format!("{}/v3/greet/Ada?greeting=Hi", address.as_str().unwrap());
    assert_eq!(get(&tests::client(), &path).await.0, 200);
    let request = event("request").await;
    assert_eq!(request["request"], "GET /v3/greet/Ada");
    assert_eq!(request["status"], 200);
    assert!(
        request["used"]["memory_bytes"].as_u64() > Some(0),
        "{request}"
    );
    assert!(running.interrupt().await.success());
    let printed = running.printed();
    assert!(!printed.contains("/v3/greet"), "{printed}");
}

/// Ctrl-C, `kill`, and a terminal that closes.
#[tokio::test]
async fn a_signal_stops_the_host_before_the_command_ends() {
    for signal in ["INT", "TERM", "HUP"] {
        let author = Author::new();
        fs::create_dir(author.path("temporary")).unwrap();
        let temporary = author.path("temporary").display().to_string();
        let greeter = guest("greeter").display().to_string();
        let mut running = author.start_shell(
            // `nohup` may have started the tests, and a shell cannot listen again to what it was started to ignore.
            &format!(
                "env --default-signal=HUP supervisor-plugin run '{greeter}' --listen 127.0.0.1:0"
            ),
            &[("TMPDIR", temporary.clone())],
        );
        address(&running).await;
        let folders = fs::read_dir(&temporary).unwrap().count();
        assert!(folders > 0, "the device has no folder");

        running.send_signal(signal);
        let status = running.until_ended().await;
        let printed = running.printed();
        assert_eq!(status.code(), Some(0), "{signal}: {printed}");
        let left: Vec<_> = fs::read_dir(&temporary).unwrap().flatten().collect();
        assert!(left.is_empty(), "{signal}: {left:?}");
    }
}

/// `nohup supervisor-plugin run &`
#[tokio::test]
async fn a_run_that_was_started_to_ignore_a_closed_terminal_ignores_it() {
    let author = Author::new();
    let greeter = guest("greeter").display().to_string();
    let run = format!("supervisor-plugin run '{greeter}' --listen 127.0.0.1:0");
    let mut running = author.start_shell(&format!("sh -c \"trap '' HUP; exec {run}\""), &[]);
    address(&running).await;
    let status = fs::read_to_string(format!("/proc/{}/status", running.pid())).unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = u64::from_str_radix(ignored.unwrap().trim(), 16).unwrap();
    assert_eq!(ignored & 1, 1, "{status}");

    running.send_signal("TERM");
    assert_eq!(running.until_ended().await.code(), Some(0));
}

/// A client that reads a stream must be able to see that it is incomplete. (Python's is in `sdk/python/tests`, because
/// compiling another interpreter takes a minute.)
#[tokio::test]
async fn a_stream_that_fails_after_its_first_piece_is_cut_and_its_error_is_logged_with_the_place() {
    for (language, source, text, place) in [
        (
            "javascript",
            "plugin.js",
            "import { timer } from \"supervisor-sdk\";\n\nexport async function* hello() {\n  yield \"one\\n\";\n  \
             await timer.sleep(50);\n  throw new Error(\"out of paper\");\n}\n",
            "at hello (src/plugin.js:6)",
        ),
        (
            "go",
            "plugin.go",
            "package main\n\nimport (\n\t\"errors\"\n\t\"fmt\"\n\t\"io\"\n\t\"time\"\n\n\t\"supervisor\"\n\t\
             \"supervisor/timer\"\n)\n\nfunc hello(r *supervisor.Request) (*supervisor.Response, error) {\n\treturn \
             supervisor.Stream(supervisor.TypeText, func(w io.Writer) error {\n\t\tfmt.Fprintln(w, \"one\")\n\t\t\
             timer.Sleep(50 * time.Millisecond)\n\t\treturn errors.New(\"out of paper\")\n\t}), nil\n}\n",
            "panic: out of paper",
        ),
    ] {
        if !can_build(language) {
            continue;
        }
        let author = Author::with_project(language);
        author.write(&format!("rails/src/{source}"), text);
        author.run_in("rails", "build").succeeds();
        let running = author.start_in("rails", "run --listen 127.0.0.1:0");
        let base = address(&running).await;
        let client = tests::client();
        let answer = client.get(format!("{base}/v3/rails/Ada")).send().await;
        // The connection may be cut before the client has seen the head of the answer.
        let text = match answer {
            Ok(answer) => {
                assert_eq!(answer.status(), 200, "{language}");
                answer.text().await
            }
            Err(error) => Err(error),
        };
        assert!(text.is_err(), "{language}: {text:?}");
        running.until_printed(place).await;
        // This line is printed where the failure is counted.
        running.until_printed("plugin `rails` failed: ").await;
    }
}

/// Returns the address on which `run` serves the plugin, once it does.
pub(crate) async fn address(running: &RunningCommand) -> String {
    let line = running.until_printed("listening on ").await;
    let address = line.split_whitespace().nth(2).unwrap();
    address.trim_end_matches(';').to_owned()
}

async fn get(client: &Client, address: &str) -> (u16, String) {
    let answer = client.get(address).send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}
