//! A minute of 64 connections to all read endpoints and streams, while updates run: no error, no lost request, no
//! growth of memory. `SUPERVISOR_LOAD_SECONDS` sets another time.
//!
//! It does not check speed, so it passes on the slowest machine, which does less in that minute.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeMap;
use std::fs;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tests::{Connection, DEADLINE, HostJournal, Supervisor, guest, service, target, until};

/// The number of connections that send one request after another, and of those that read streams without an end.
const ASKING: usize = 46;
const LOGS: usize = 6;
const EVENTS: usize = 8;
const JOURNALS: usize = 4;
/// The pause between two requests of one connection, to load the device rather than this program.
const PAUSE: Duration = Duration::from_millis(2);
/// How often a request that is answered with a 503 is repeated, as clients do.
const REPEATED: usize = 3;
/// How long a stream is read before it is opened again.
const READ_FOR: Duration = Duration::from_secs(4);
/// How much anonymous memory may grow, in bytes.
const GROWTH: u64 = 10 << 20;

/// Every read endpoint, and the expected statuses on this device. One of them would need a cloud.
const READS: [(&str, &[u16]); 24] = [
    ("/ping", &[200]),
    ("/v1/healthy", &[200]),
    ("/v1/device", &[200]),
    ("/v1/device/host-config", &[200]),
    // Version 1 does not support apps with two containers; in the middle of an update there is only one.
    ("/v1/apps/1", &[400, 200]),
    ("/v2/version", &[200]),
    ("/v2/applications/state", &[200]),
    ("/v2/applications/1/state", &[200]),
    ("/v2/state/status", &[200]),
    ("/v2/containerId", &[200]),
    ("/v2/containerId?service=talker", &[200]),
    ("/v2/device/name", &[200]),
    ("/v2/device/vpn", &[200]),
    ("/v2/device/tags", &[TAGS]),
    ("/v2/local/target-state", &[200]),
    ("/v2/local/device-info", &[200]),
    ("/v3/plugins", &[200]),
    ("/v3/plugins/device-info/log", &[200]),
    ("/v3/plan", &[200]),
    ("/v3/locks", &[200]),
    ("/v3/openapi.json", &[200]),
    ("/v3/nothing-at-all", &[404]),
    ("/metrics", &[200]),
    ("/v3/events?types=nonsense", &[400]),
];
/// The answer without a cloud.
const TAGS: u16 = 500;

/// The data that all tasks share.
struct Load {
    base: String,
    key: String,
    over: AtomicBool,
    requests: AtomicU64,
    pieces: AtomicU64,
    /// How often a request was repeated.
    repeated: AtomicU64,
}

impl Load {
    fn goes_on(&self) -> bool {
        !self.over.load(Relaxed)
    }

    async fn open(&self) -> io::Result<Connection> {
        within(Connection::open(&self.base, &self.key)).await
    }

    /// Sends a request to each endpoint in turn.
    async fn ask(self: Arc<Self>, first: usize) -> Result<(), String> {
        let mut connection = self.open().await.map_err(|error| error.to_string())?;
        for place in first.. {
            if !self.goes_on() {
                break;
            }
            let (path, expected) = READS[place % READS.len()];
            let mut answer = within(connection.get(path)).await;
            // A plugin that lacks processor time makes callers wait for 5 s and then retry.
            for _ in 0..REPEATED {
                if !matches!(answer, Ok((503, _))) {
                    break;
                }
                self.repeated.fetch_add(1, Relaxed);
                answer = within(connection.get(path)).await;
            }
            match answer {
                Ok((status, _)) if expected.contains(&status) => {}
                Ok((status, body)) => {
                    let body = String::from_utf8_lossy(&body);
                    return Err(format!("{path}: {status}, none of {expected:?}: {body}"));
                }
                Err(error) => return Err(format!("{path}: no answer: {error}")),
            }
            self.requests.fetch_add(1, Relaxed);
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Reads lines of JSON.
    async fn read_logs(self: Arc<Self>) -> Result<(), String> {
        let what = "/v2/local/logs";
        while self.goes_on() {
            let (mut text, since) = (Vec::new(), Instant::now());
            let opened = self
                .open()
                .await
                .map_err(|error| format!("{what}: {error}"))?;
            let opened = within(opened.stream("GET", what, "", "")).await;
            let mut stream = opened.map_err(|error| error.to_string())?;
            while self.goes_on() && since.elapsed() < READ_FOR {
                // A service prints ten lines a second.
                let piece = within(stream.next()).await;
                let piece = piece.map_err(|error| format!("{what}: {error}"))?;
                text.extend(piece.ok_or_else(|| format!("{what} ended"))?);
                self.pieces.fetch_add(1, Relaxed);
                while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = text.drain(..=end).collect();
                    let parsed = serde_json::from_slice::<Value>(&line);
                    parsed.map_err(|error| format!("{what}: {error}"))?;
                }
            }
        }
        Ok(())
    }

    /// Reads events, reconnects again and again, and misses none.
    async fn read_events(self: Arc<Self>) -> Result<(), String> {
        let what = "/v3/events";
        let mut last: Option<String> = None;
        while self.goes_on() {
            let since = Instant::now();
            let headers = last.as_ref().map(|id| format!("last-event-id: {id}\r\n"));
            let headers = headers.unwrap_or_default();
            let opened = self
                .open()
                .await
                .map_err(|error| format!("{what}: {error}"))?;
            let opened = opened.stream("GET", what, &headers, "");
            let mut stream = within(opened).await.map_err(|error| error.to_string())?;
            let mut text = String::new();
            while self.goes_on() && since.elapsed() < READ_FOR {
                // At the latest a heartbeat.
                let piece = within(stream.next()).await;
                let piece = piece.map_err(|error| format!("{what}: {error}"))?;
                let piece = piece.ok_or_else(|| format!("{what} ended"))?;
                text.push_str(&String::from_utf8(piece).map_err(|error| error.to_string())?);
                self.pieces.fetch_add(1, Relaxed);
                while let Some(end) = text.find("\n\n") {
                    let frame: String = text.drain(..end + 2).collect();
                    if frame.contains("event: gap") {
                        return Err(format!("{what}: a gap after {last:?}: {frame}"));
                    }
                    let id = frame.lines().find_map(|line| line.strip_prefix("id: "));
                    let Some(id) = id else { continue };
                    if last
                        .as_deref()
                        .is_some_and(|last| number(id) != number(last) + 1)
                    {
                        return Err(format!("{what}: {id} after {last:?}"));
                    }
                    last = Some(id.to_owned());
                }
            }
        }
        Ok(())
    }

    async fn read_journal(self: Arc<Self>) -> Result<(), String> {
        let what = "/v2/journal-logs";
        while self.goes_on() {
            let since = Instant::now();
            let opened = self
                .open()
                .await
                .map_err(|error| format!("{what}: {error}"))?;
            let headers = "content-type: application/json\r\n";
            let body = r#"{"follow": true, "count": 5, "format": "json"}"#;
            let opened = within(opened.stream("POST", what, headers, body)).await;
            let mut stream = opened.map_err(|error| error.to_string())?;
            while self.goes_on() && since.elapsed() < READ_FOR {
                let piece = within(stream.next()).await;
                let piece = piece.map_err(|error| format!("{what}: {error}"))?;
                piece.ok_or_else(|| format!("{what} ended"))?;
                self.pieces.fetch_add(1, Relaxed);
            }
        }
        Ok(())
    }
}

fn number(id: &str) -> u64 {
    id.split_once('-')
        .and_then(|(_, n)| n.parse().ok())
        .unwrap()
}

/// Anything that takes this long counts as lost.
async fn within<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    match tokio::time::timeout(DEADLINE, work).await {
        Ok(outcome) => outcome,
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// Returns a target of two services, one of which changes.
fn load_target(change: u64) -> Value {
    let changed = json!({"environment": {"CHANGE": change.to_string()}});
    target(
        1,
        &[
            service("talker", &guest("guest"), &json!({"command": ["tick"]})),
            service("web", &guest("hello-server"), &changed),
        ],
    )
}

/// Returns the supervisor's own pages that no file backs, in bytes.
fn anonymous(device: &Supervisor) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", device.pid())).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let kibibytes = line
        .and_then(|line| line.trim().strip_suffix(" kB"))
        .unwrap();
    kibibytes.trim().parse::<u64>().unwrap() << 10
}

/// Loads the device for a time; returns the number of updates in that time, and the maximum memory.
async fn run(
    device: &Supervisor,
    journal: &mut Option<HostJournal>,
    time: Duration,
    changes: &mut u64,
) -> (u64, u64) {
    let load = Arc::new(Load {
        base: device.base().to_owned(),
        key: device.key().to_owned(),
        over: AtomicBool::new(false),
        requests: AtomicU64::new(0),
        pieces: AtomicU64::new(0),
        repeated: AtomicU64::new(0),
    });
    let mut tasks = Vec::new();
    let asking = if journal.is_some() {
        ASKING
    } else {
        ASKING + JOURNALS
    };
    for first in 0..asking {
        tasks.push(tokio::spawn(load.clone().ask(first)));
    }
    for _ in 0..LOGS {
        tasks.push(tokio::spawn(load.clone().read_logs()));
    }
    for _ in 0..EVENTS {
        tasks.push(tokio::spawn(load.clone().read_events()));
    }
    if journal.is_some() {
        for _ in 0..JOURNALS {
            tasks.push(tokio::spawn(load.clone().read_journal()));
        }
    }
    assert_eq!(tasks.len(), 64);

    let (begin, mut updates, mut most) = (Instant::now(), 0, 0);
    while begin.elapsed() < time && !tasks.iter().any(tokio::task::JoinHandle::is_finished) {
        *changes += 1;
        device.set_target(&load_target(*changes)).await;
        device.until_applied().await;
        updates += 1;
        if let Some(journal) = journal {
            journal.log("web.service", "web", b"it goes on").await;
        }
        most = most.max(anonymous(device));
    }
    load.over.store(true, Relaxed);
    if let Some(journal) = journal {
        // Readers that wait for the next entry notice that the test is over.
        journal.log("web.service", "web", b"the end").await;
    }
    let mut wrong = BTreeMap::new();
    for task in tasks {
        if let Err(why) = task.await.unwrap() {
            *wrong.entry(why).or_insert(0) += 1;
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let (requests, repeated) = (load.requests.load(Relaxed), load.repeated.load(Relaxed));
    assert!(
        repeated * 100 <= requests,
        "{repeated} of {requests} requests had to be repeated"
    );
    println!(
        "{requests} requests, {repeated} of them repeated, {} pieces of streams and {updates} updates in {:?}, at most {} KiB anonymous",
        load.pieces.load(Relaxed),
        begin.elapsed(),
        most >> 10,
    );
    (updates, most)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_minute_of_load_while_updates_run_costs_no_request_and_no_memory() {
    let seconds = std::env::var("SUPERVISOR_LOAD_SECONDS").ok();
    let seconds = seconds.map_or(60, |text| text.parse().expect("a number of seconds"));
    let time = Duration::from_secs(seconds);
    let device = Supervisor::on_wasm().start().await;
    let mut journal = HostJournal::below(device.host_root());
    if let Some(journal) = &mut journal {
        journal.log("web.service", "web", b"begins").await;
    }
    device.set_target(&load_target(0)).await;
    device.until_applied().await;
    for (path, expected) in READS {
        let answer = device.get(path).await;
        assert_eq!(answer.status, expected[0], "{path} at rest: {answer:?}");
    }

    // Everything has been done once, and caches are full.
    let mut changes = 0;
    run(
        &device,
        &mut journal,
        (time / 4).max(Duration::from_secs(5)),
        &mut changes,
    )
    .await;
    let before = anonymous(&device);
    let (updates, _) = run(&device, &mut journal, time, &mut changes).await;
    assert!(updates > 0, "no update was done");
    until("memory to be what it was", || async {
        let after = anonymous(&device);
        if after <= before + GROWTH {
            println!(
                "{} KiB anonymous before, {} KiB after",
                before >> 10,
                after >> 10
            );
            Ok(())
        } else {
            Err(format!(
                "{} KiB before, {} KiB now",
                before >> 10,
                after >> 10
            ))
        }
    })
    .await;
    // The device is as healthy as before.
    let page = device.get("/metrics").await.text;
    for line in [
        r#"supervisor_stream_readers{stream="events"} 0"#,
        r#"supervisor_stream_readers{stream="logs"} 0"#,
        "supervisor_update_locks_held 0",
    ] {
        until(line, || async {
            let page = device.get("/metrics").await.text;
            if page.lines().any(|found| found == line) {
                Ok(())
            } else {
                Err(page)
            }
        })
        .await;
    }
    for line in page
        .lines()
        .filter(|line| line.starts_with("supervisor_plugin_faults_total"))
    {
        // Without a cloud its plugin cannot answer, which does not count as its fault.
        assert!(line.ends_with(" 0"), "{line}");
    }
}
