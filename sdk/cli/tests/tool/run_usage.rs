//! `run`: what a call used of the plugin's limits, in the line about it.

use std::fs;

use tests::{guest, guest_plugin};

use crate::author::{Author, RunningCommand};
use crate::run::address;

/// The processor time and the memory in a line.
#[derive(Debug, Clone, Copy)]
struct ShownUse {
    milliseconds: f64,
    mib: f64,
}

/// Starts a plugin that does what its path says, with these limits.
fn start(author: &Author, limits: &str) -> RunningCommand {
    let component = fs::read(guest("plugin_guests")).unwrap();
    let keys = "name = \"mine\"\nversion = \"1.0.0\"\nroutes = [{ method = \"GET\", path = \"/v3/mine/:what\" }]\n";
    let plugin = guest_plugin(&component, keys, limits);
    fs::write(author.path("mine.wasm"), plugin).unwrap();
    author.start_in("", "run mine.wasm --listen 127.0.0.1:0")
}

/// Reads what a line shows, such as `(0.3 ms of 1000 ms processor time, 2.1 of 16 MiB)`, with these limits.
fn shown_use(line: &str, [milliseconds, mib]: [&str; 2]) -> ShownUse {
    let number = |after: &str, before: &str| {
        let rest = line.split_once(after);
        let number = rest.and_then(|(_, rest)| rest.split_once(before));
        let number = number.and_then(|(number, _)| number.parse().ok());
        number.unwrap_or_else(|| panic!("no number before `{before}` in {line}"))
    };
    ShownUse {
        milliseconds: number("(", &format!(" ms of {milliseconds} ms processor time")),
        mib: number("processor time, ", &format!(" of {mib} MiB)")),
    }
}

#[tokio::test]
async fn a_call_that_computes_and_one_that_allocates_show_more_than_one_that_does_neither() {
    let author = Author::new();
    let running = start(&author, "[limits]\ncpu_ms = 900\nmemory_mib = 12\n");
    let base = address(&running).await;
    let client = tests::client();
    let mut shown = Vec::new();
    for (what, arrow, status) in [
        ("hello", "", 200),
        ("spin", "-> ", 504),
        ("hold?mib=8&ms=1", "", 200),
    ] {
        let answer = client.get(format!("{base}/v3/mine/{what}")).send().await;
        let answer = answer.unwrap();
        assert_eq!(answer.status(), status, "{what}");
        let path = what.split('?').next().unwrap();
        let end = format!("GET /v3/mine/{path} {arrow}{status} in ");
        let line = running.until_printed(&end).await;
        let (failure, use_of_call) = line.split_once(&end).unwrap();
        assert_eq!(failure.contains("`cpu_ms`"), what == "spin", "{line}");
        shown.push(shown_use(use_of_call, ["900", "12"]));
    }
    let (hello, spin, hold) = (shown[0], shown[1], shown[2]);
    assert!(spin.milliseconds > hello.milliseconds, "{shown:?}");
    assert!(hold.mib > hello.mib, "{shown:?}");
    assert!(hello.mib > 0.0, "{shown:?}");

    // The plugin is not called.
    let missing = client.get(format!("{base}/v1/device")).send().await;
    assert_eq!(missing.unwrap().status(), 404);
    let line = running.until_printed("GET /v1/device 404 in ").await;
    assert!(!line.contains("processor time"), "{line}");
}

#[tokio::test]
async fn a_panic_is_in_the_line_of_the_request_and_its_trace_is_not_shown() {
    let author = Author::new();
    let running = start(&author, "");
    let base = address(&running).await;
    let answer = tests::client().get(format!("{base}/v3/mine/panic")).send();
    assert_eq!(answer.await.unwrap().status(), 500);
    let line = running.until_printed("GET /v3/mine/panic -> 500 in ").await;
    let panic = "panic: this plugin panics (tests/plugin-guests/src/misbehave.rs:14:20)   GET ";
    assert!(line.starts_with(panic), "{line}");
    let printed = running.printed();
    // Not to a terminal.
    for hidden in ["backtrace", "plugin_call", "thread '", "plugin=", "\u{1b}"] {
        assert!(!printed.contains(hidden), "{printed}");
    }
}

#[tokio::test]
async fn a_stream_shows_what_it_has_used_at_its_beginning_and_at_its_end() {
    let author = Author::new();
    let running = start(&author, "");
    let base = address(&running).await;
    let answer = tests::client()
        .get(format!("{base}/v3/mine/pieces?count=3"))
        .send()
        .await;
    answer.unwrap().bytes().await.unwrap();
    let begun = running.until_printed("GET /v3/mine/pieces 200 in ").await;
    assert!(begun.contains(" ms, so far ("), "{begun}");
    shown_use(&begun, ["1000", "16"]);
    let ended = "GET /v3/mine/pieces: the stream ended after ";
    let ended = running.until_printed(ended).await;
    assert!(
        ended.contains(" ms processor time for a piece, "),
        "{ended}"
    );
    assert!(ended.contains(" (at most "), "{ended}");
}
