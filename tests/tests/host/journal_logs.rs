//! `POST /v2/journal-logs`, compared with systemd's own programs on journals that these created.

use std::fs;

use futures::{Stream, StreamExt};
use serde_json::{Value, json};
use tests::{DEADLINE, HostJournal, Supervisor, children_of, repository, until};

/// The options of the journal command for the fields of the body, as a user of the host would type them.
const OPTIONS: [(&str, &[&str]); 22] = [
    ("{}", &[]),
    (r#"{"all": true}"#, &["-a"]),
    (r#"{"all": "on", "count": 3}"#, &["-a", "-n", "3"]),
    (r#"{"count": 2}"#, &["-n", "2"]),
    (r#"{"count": "4"}"#, &["-n", "4"]),
    (r#"{"count": 0}"#, &[]),
    (r#"{"count": 1000000}"#, &["-n", "1000000"]),
    (r#"{"unit": "web.service"}"#, &["-u", "web.service"]),
    (r#"{"unit": "web"}"#, &["-u", "web"]),
    (r#"{"unit": "w*"}"#, &["-u", "w*"]),
    (r#"{"unit": "no-such-unit"}"#, &["-u", "no-such-unit"]),
    (
        r#"{"containerId": "0a1b2c3d4e5f"}"#,
        &["-t", "0a1b2c3d4e5f"],
    ),
    (
        r#"{"since": "2023-11-14 22:15:00 UTC"}"#,
        &["-S", "2023-11-14 22:15:00 UTC"],
    ),
    (
        r#"{"until": "2023-11-14 22:15:00 UTC"}"#,
        &["-U", "2023-11-14 22:15:00 UTC"],
    ),
    (
        r#"{"since": "@1700000060", "until": "@1700000120"}"#,
        &["-S", "@1700000060", "-U", "@1700000120"],
    ),
    (r#"{"since": "no time at all"}"#, &["-S", "no time at all"]),
    (r#"{"format": "json"}"#, &["-o", "json"]),
    (r#"{"format": "json-pretty"}"#, &["-o", "json-pretty"]),
    (r#"{"format": "cat", "all": true}"#, &["-a", "-o", "cat"]),
    (
        r#"{"format": "verbose", "count": 1}"#,
        &["-n", "1", "-o", "verbose"],
    ),
    (
        r#"{"format": "short-iso", "unit": "db.service", "count": 1, "all": true, "since": "@1700000000"}"#,
        &[
            "-a",
            "-u",
            "db.service",
            "-n",
            "1",
            "-S",
            "@1700000000",
            "-o",
            "short-iso",
        ],
    ),
    (r#"{"format": "export"}"#, &["-o", "export"]),
];

/// A device whose host has logged text, bytes that are not text, and a lot at once.
async fn device() -> Option<(Supervisor, HostJournal)> {
    let device = Supervisor::on_wasm().start().await;
    let mut journal = HostJournal::below(device.host_root())?;
    let long = "long ".repeat(20_000);
    for (unit, identifier, message) in [
        ("web.service", "web", b"begins".as_slice()),
        (
            "db.service",
            "db",
            "caf\u{e9} \u{1f431} {\"a\": \"b\"}".as_bytes(),
        ),
        ("web.service", "0a1b2c3d4e5f", b"from a container"),
        ("db.service", "db", b"\x1b[31mnot\0text\xff\xfe"),
        ("web.service", "web", b"several\nlines"),
        ("db.service", "db", long.as_bytes()),
    ] {
        journal.log(unit, identifier, message).await;
    }
    Some((device, journal))
}

/// Parses consecutive JSON values in `text`.
fn values(text: &[u8]) -> Vec<Value> {
    let values = serde_json::Deserializer::from_slice(text).into_iter();
    values.collect::<Result<_, _>>().unwrap()
}

async fn body_of(device: &Supervisor, body: &str) -> (u16, String, Vec<u8>) {
    let request = device
        .request("POST", "/v2/journal-logs")
        .header("content-type", "application/json")
        .body(body.to_owned());
    let response = request.send().await.unwrap();
    let content_type = response.headers()["content-type"]
        .to_str()
        .unwrap()
        .to_owned();
    let status = response.status().as_u16();
    (
        status,
        content_type,
        response.bytes().await.unwrap().to_vec(),
    )
}

#[tokio::test]
async fn the_output_is_the_journal_commands_byte_for_byte() {
    let Some((device, journal)) = device().await else {
        return;
    };
    for (body, arguments) in OPTIONS {
        let expected = journal.print(arguments);
        let (status, _, found) = body_of(&device, body).await;
        assert_eq!(status, 200, "{body}");
        if body.contains("json") {
            // The command itself prints fields in a different order at each run.
            assert_eq!(values(&found), values(&expected), "{body}");
            continue;
        }
        assert!(
            found == expected,
            "{body}: {} bytes in place of {}:\n{}",
            found.len(),
            expected.len(),
            String::from_utf8_lossy(&found)
        );
    }
    // Comparing empty answers would prove nothing.
    assert!(journal.print(&[]).len() > 1000);
    assert!(journal.print(&["-u", "web"]).len() > 100);
    let (_, _, without_body) = body_of(&device, "").await;
    assert_eq!(without_body, journal.print(&[]));
}

#[tokio::test]
async fn the_type_of_the_output_is_its_formats() {
    let Some((device, _journal)) = device().await else {
        return;
    };
    for (body, expected) in [
        ("{}", "text/plain; charset=utf-8"),
        (r#"{"format": "short-full"}"#, "text/plain; charset=utf-8"),
        (r#"{"format": "json"}"#, "application/json"),
        (r#"{"format": "export"}"#, "application/octet-stream"),
        // If the command refuses its options, the answer is empty.
        (r#"{"format": "nonsense"}"#, "text/plain; charset=utf-8"),
    ] {
        let (status, content_type, _) = body_of(&device, body).await;
        assert_eq!((status, content_type.as_str()), (200, expected), "{body}");
    }
    let form = device
        .request("POST", "/v2/journal-logs")
        .header("content-type", "application/x-www-form-urlencoded")
        .body("count=1&format=cat&unit=web.service");
    assert_eq!(device.send(form).await.text, "several\nlines\n");
}

#[tokio::test]
async fn wrong_types_and_options_in_place_of_values_are_refused_and_start_nothing() {
    let device = Supervisor::on_wasm()
        .argument("--journal-program")
        .argument("/nowhere/journalctl")
        .start()
        .await;
    for (field, value) in [
        ("all", json!([])),
        ("all", json!({})),
        ("follow", json!([true])),
        ("count", json!("many")),
        ("count", json!(1.5)),
        ("count", json!(true)),
        ("unit", json!(5)),
        ("unit", json!("--vacuum-time=1s")),
        ("unit", json!("-f")),
        ("containerId", json!(["a"])),
        ("containerId", json!("-1")),
        ("format", json!(true)),
        ("format", json!("--rotate")),
        ("since", json!(1_700_000_000)),
        ("since", json!("--file=/etc/passwd")),
        ("until", json!({})),
        ("until", json!("-h1")),
        ("until", json!("a\u{0}b")),
        ("unit", json!("a".repeat(2000))),
    ] {
        let body = json!({ field: value });
        let answer = device.post("/v2/journal-logs", &body).await;
        assert_eq!(answer.status, 400, "{body}");
        let message = answer.failure().unwrap_or_else(|| panic!("{answer:?}"));
        assert!(message.contains(&format!("`{field}`")), "{body}: {message}");
    }
    // Failures that are not the caller's fault; its times may be relative to now.
    for body in [json!({}), json!({ "since": "-1h", "until": "-5min" })] {
        let answer = device.post("/v2/journal-logs", &body).await;
        assert_eq!(answer.status, 503, "{body}");
        let message = answer.failure().unwrap();
        assert!(message.contains("/nowhere/journalctl"), "{message}");
    }
}

/// Reads a stream until it contains `text`.
async fn read_until<E: std::fmt::Debug>(
    stream: &mut (impl Stream<Item = Result<bytes::Bytes, E>> + Unpin),
    text: &str,
) -> String {
    let mut line = String::new();
    let read = async {
        while !line.contains(text) {
            let piece = stream.next().await.unwrap().unwrap();
            line.push_str(&String::from_utf8_lossy(&piece));
        }
    };
    tokio::time::timeout(DEADLINE, read).await.unwrap();
    line
}

async fn follow(device: &Supervisor, body: Value) -> reqwest::Response {
    let request = device
        .client()
        .post(format!("{}/v2/journal-logs", device.base()))
        .bearer_auth(device.key())
        .json(&body);
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    response
}

async fn until_nobody_reads(journal: &HostJournal) {
    until("the reader's process to be gone", || async {
        match journal.readers() {
            none if none.is_empty() => Ok(()),
            some => Err(some),
        }
    })
    .await;
}

#[tokio::test]
async fn a_follower_gets_what_is_logged_until_it_leaves_and_then_its_process_is_gone() {
    let Some((device, mut journal)) = device().await else {
        return;
    };
    let response = follow(
        &device,
        json!({"follow": true, "count": 1, "unit": "web.service", "format": "cat"}),
    )
    .await;
    let mut stream = response.bytes_stream();
    assert_eq!(read_until(&mut stream, "lines\n").await, "several\nlines\n");
    assert_eq!(journal.readers().len(), 1);

    journal.log("db.service", "db", b"not asked for").await;
    journal.log("web.service", "web", b"goes on").await;
    assert_eq!(read_until(&mut stream, "goes on\n").await, "goes on\n");

    // Nothing more is logged: the disconnection itself is noticed.
    drop(stream);
    until_nobody_reads(&journal).await;
}

#[tokio::test]
async fn a_reader_ends_with_the_supervisor_too_and_other_streams_go_on_meanwhile() {
    let Some((mut device, mut journal)) = device().await else {
        return;
    };
    let body = json!({"follow": true, "format": "cat"});
    let mut streams = Vec::new();
    // As many as one plugin may have.
    for _ in 0..12 {
        streams.push(follow(&device, body.clone()).await.bytes_stream());
    }
    journal.log("web.service", "web", b"for all").await;
    for stream in &mut streams {
        read_until(stream, "for all").await;
    }
    assert_eq!(journal.readers().len(), 12);
    let left = streams.split_off(6);
    drop(left);
    until("six readers to be gone", || async {
        let readers = journal.readers().len();
        if readers == 6 { Ok(()) } else { Err(readers) }
    })
    .await;
    device.terminate().await;
    until_nobody_reads(&journal).await;
}

/// Returns how much the process has written so far, in bytes.
fn written_by(pid: i32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/io")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("wchar: "));
    line.unwrap().parse().unwrap()
}

/// Returns the processes that read the journal for the device: its children, except the one that runs plugins.
fn readers_of(device: &Supervisor) -> Vec<i32> {
    let mut children = children_of(device.pid());
    children.retain(|pid| {
        let program = fs::read_to_string(format!("/proc/{pid}/comm"));
        program.is_ok_and(|name| !name.starts_with("supervisor-wasm"))
    });
    children
}

#[tokio::test]
async fn a_slow_reader_holds_up_the_command_and_nobody_else() {
    let program = repository().join("host/os/tests/programs/flood");
    let device = Supervisor::on_wasm()
        .argument("--journal-program")
        .argument(program.display().to_string())
        .start()
        .await;
    let mut slow = follow(&device, json!({})).await.bytes_stream();
    let first = slow.next().await.unwrap().unwrap();
    let [pid] = readers_of(&device)[..] else {
        panic!("not one reader: {:?}", readers_of(&device));
    };
    let mut quiet = (0, 0);
    until("the command to wait for its reader", || {
        let written = written_by(pid);
        let looks = if written == quiet.0 { quiet.1 + 1 } else { 0 };
        quiet = (written, looks);
        async move {
            if looks >= 40 {
                Ok(())
            } else {
                Err((written, looks))
            }
        }
    })
    .await;
    // Others are served at the same time, including other readers of the journal.
    let mut other = follow(&device, json!({})).await.bytes_stream();
    let mut read = 0;
    while read < 64 << 20 {
        read += other.next().await.unwrap().unwrap().len();
    }
    assert_eq!(written_by(pid), quiet.0);
    // Nothing was lost.
    let mut text = first.to_vec();
    while text.len() < usize::try_from(quiet.0).unwrap() {
        text.extend(slow.next().await.unwrap().unwrap());
    }
    let line = b"a line of the journal\n";
    assert!(text.iter().eq(line.iter().cycle().take(text.len())));
    drop((slow, other));
    until("the readers to be gone", || async {
        let readers = readers_of(&device);
        if readers.is_empty() {
            Ok(())
        } else {
            Err(readers)
        }
    })
    .await;
}

#[tokio::test]
async fn times_are_printed_in_the_hosts_own_zone() {
    let device = Supervisor::on_wasm()
        .environment("TZ", "Asia/Tokyo")
        .start()
        .await;
    let Some(mut journal) = HostJournal::below(device.host_root()) else {
        return;
    };
    journal.log("web.service", "web", b"begins").await;
    let hour = async || {
        let (_, _, text) = body_of(&device, "{}").await;
        String::from_utf8(text)
            .unwrap()
            .split(' ')
            .nth(2)
            .unwrap()
            .to_owned()
    };
    assert_eq!(hour().await, "07:13:20");
    fs::create_dir_all(device.host_root().join("etc")).unwrap();
    let zone = device.host_root().join("usr/share/zoneinfo");
    fs::create_dir_all(&zone).unwrap();
    fs::copy("/usr/share/zoneinfo/America/New_York", zone.join("Home")).unwrap();
    std::os::unix::fs::symlink(
        "/usr/share/zoneinfo/Home",
        device.host_root().join("etc/localtime"),
    )
    .unwrap();
    assert_eq!(hour().await, "17:13:20");
}
