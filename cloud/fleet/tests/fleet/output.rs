//! The output for people, and for programs.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc;

use serde_json::{Value, json};

use crate::harness::{Cloud, Person};

/// A test cloud that sends these answers in order, one per connection, and records the requests.
fn recorded(answers: Vec<String>) -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let (sender, requests) = mpsc::channel();
    std::thread::spawn(move || {
        for answer in answers {
            let Ok((mut stream, _)) = listener.accept() else {
                return;
            };
            let mut request = Vec::new();
            let mut piece = [0; 4096];
            let text = loop {
                let read = stream.read(&mut piece).unwrap_or(0);
                request.extend_from_slice(&piece[..read]);
                let text = String::from_utf8_lossy(&request).into_owned();
                let length = text
                    .to_lowercase()
                    .split_once("content-length: ")
                    .and_then(|(_, rest)| rest.lines().next()?.parse::<usize>().ok())
                    .unwrap_or(0);
                if read == 0 {
                    break text;
                }
                if let Some((_, body)) = text.split_once("\r\n\r\n")
                    && body.len() >= length
                {
                    break text;
                }
            };
            let _ = sender.send(text);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (url, requests)
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n{body}",
        body.len()
    )
}

fn at(url: &str) -> Person {
    Person::new()
        .with("FLEET_URL", url)
        .with("FLEET_TOKEN", "0123456789abcdef")
}

#[test]
fn a_cloud_that_is_busy_is_asked_again_when_it_says() {
    let busy = |status: &str| answer(status, "retry-after: 1\r\n", "\"Too Many Requests\"");
    let (url, requests) = recorded(vec![
        busy("429 Too Many Requests"),
        busy("503 Service Unavailable"),
        answer("200 OK", "", "{\"d\":[]}"),
    ]);
    assert_eq!(at(&url).json(&["fleets"]), json!([]));
    assert_eq!(requests.iter().take(3).count(), 3);

    let (url, _) = recorded(vec![answer(
        "429 Too Many Requests",
        "retry-after: 3600\r\n",
        "",
    )]);
    let message = at(&url).refused(1, &["fleets"]);
    assert!(message.contains("try again in 3600 s"), "{message}");
}

#[test]
fn a_server_that_is_no_fleet_cloud_is_reported() {
    for (status, body, expected) in [
        ("200 OK", "<html>hello</html>", "is not the expected one"),
        (
            "500 Internal Server Error",
            "\"Server error\"",
            "500 Internal Server Error: Server error",
        ),
        ("302 Found", "", "302 Found"),
    ] {
        let (url, _) = recorded(vec![answer(
            status,
            "location: http://127.0.0.1:1/\r\n",
            body,
        )]);
        let message = at(&url).refused(1, &["fleets"]);
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn failures_are_json_for_programs() {
    let cloud = Cloud::start();
    let ann = Person::signed_in(&cloud);
    let message = ann.refused(4, &["show", "pump", "--json"]);
    let answer: Value = serde_json::from_str(&message).expect("JSON");
    assert_eq!(answer["error"], json!("there is no fleet `pump`"));
    assert_eq!(answer["hint"], json!("`fleet fleets` lists them"));
}

/// Returns the output of a shell that reads its completion script from standard input; `None` if it is not installed.
fn completed(shell: &str, arguments: &[&str]) -> Option<String> {
    let person = Person::new();
    let script = person.done(&["completion", shell]);
    let begun = std::process::Command::new(shell)
        .args(arguments)
        .env("HOME", person.home.path())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn();
    let mut running = match begun {
        Ok(running) => running,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => panic!("{shell}: {error}"),
    };
    let mut input = running.stdin.take().expect("its input");
    input.write_all(script.as_bytes()).expect("a reader");
    drop(input);
    let done = running.wait_with_output().expect("its end");
    Some(String::from_utf8(done.stdout).expect("text"))
}

#[test]
fn shells_complete_commands() {
    // Loaded as people load it, the script completes the beginning of a command. bash exists on every test machine.
    let bash = "source /dev/stdin; COMP_WORDS=(fleet depl); COMP_CWORD=1; _fleet fleet depl fleet; echo ${COMPREPLY[@]}";
    assert_eq!(
        completed("bash", &["-c", bash]).as_deref(),
        Some("deploy\n")
    );
    // Makes zsh print what it would show.
    let zsh = "autoload -Uz compinit; compinit -D -u; source /dev/stdin; print -l $_comps[fleet]; \
               _describe() { print -l ${(P)4} }; _fleet_commands; _fleet__subcmd__keys_commands";
    if let Some(shown) = completed("zsh", &["-f", "-c", zsh]) {
        assert!(shown.starts_with("_fleet\n"), "{shown}");
        assert!(shown.contains("\ndeploy:Create a release"), "{shown}");
        assert!(shown.contains("\nprovisioning:Create a key"), "{shown}");
    }
    let fish = "source -; complete -C 'fleet depl'; complete -C 'fleet keys prov'";
    if let Some(shown) = completed("fish", &["-N", "-c", fish]) {
        let names: Vec<&str> = shown
            .lines()
            .filter_map(|line| line.split('\t').next())
            .collect();
        assert_eq!(names, ["deploy", "provisioning"]);
    }
    Person::new().refused(2, &["completion", "cmd"]);
    Person::new().refused(2, &["nonsense"]);
}

const DEVICE: &str = r#"{"d":[{"id":7,"uuid":"0123456789abcdef0123456789abcdef","device_name":"west","belongs_to__application":{"__id":4}}]}"#;

/// Runs a command that sends a request to a device, through a recorded cloud whose proxy answers like this.
fn run_on_device(arguments: &[&str], status: &str, body: &str) -> crate::harness::CommandResult {
    let (url, _) = recorded(vec![answer("200 OK", "", DEVICE), answer(status, "", body)]);
    at(&url).run(arguments)
}

/// Failures that a real device does not produce on request; its normal answers are tested with one (tests/device).
#[test]
fn failures_on_the_way_to_a_device_are_reported() {
    for (status, body, code, expected) in [
        (
            "502 Bad Gateway",
            "tunnel lost",
            1,
            "did not answer: tunnel lost",
        ),
        ("403 Forbidden", "", 3, "not allowed"),
        (
            "500 Internal Server Error",
            r#"{"error":"Bad API response from supervisor"}"#,
            1,
            "Bad API response",
        ),
    ] {
        let ran = run_on_device(&["device", "restart", "west"], status, body);
        assert_eq!(ran.code, code, "{status}: {}", ran.err);
        assert!(ran.err.contains(expected), "{status}: {}", ran.err);
    }
}

#[test]
fn a_missing_service_is_reported_with_the_existing_ones() {
    for verb in [
        &["restart", "west", "--service", "nope"][..],
        &["stop", "west", "--service", "nope"],
    ] {
        let (url, _) = recorded(vec![
            answer("200 OK", "", DEVICE),
            answer(
                "404 Not Found",
                "",
                r#"{"status":"failed","message":"Service not found"}"#,
            ),
            answer("200 OK", "", r#"{"d":[{"id":1,"service_name":"main"}]}"#),
        ]);
        let ran = at(&url).run(&[&["device"], verb].concat());
        assert_eq!(ran.code, 4, "{}", ran.err);
        assert!(ran.err.contains("has no service `nope`"), "{}", ran.err);
        assert!(ran.err.contains("it has main"), "{}", ran.err);
    }
}

#[test]
fn logs_that_are_followed_go_on_where_the_stream_broke() {
    let line = |at: i64, message: &str| {
        json!({
            "message": message, "timestamp": at, "createdAt": at + 5, "isSystem": false, "isStdErr": false,
            "serviceId": 1,
        })
        .to_string()
    };
    let stream = format!("{}\n\n{}\n", line(0, "one"), line(1000, "two"));
    // Lines of the same moment are sent again, and printed only once.
    let again = format!("{}\n{}\n", line(1000, "two"), line(1000, "three"));
    let (url, requests) = recorded(vec![
        answer("200 OK", "", DEVICE),
        answer("200 OK", "", r#"{"d":[{"id":1,"service_name":"main"}]}"#),
        answer("200 OK", "content-type: application/x-ndjson\r\n", &stream),
        answer("200 OK", "content-type: application/x-ndjson\r\n", &again),
        answer("401 Unauthorized", "", ""),
    ]);
    let ran = at(&url).run(&["logs", "west", "--follow", "--tail", "7"]);
    assert_eq!(ran.code, 3, "{}", ran.err);
    assert_eq!(
        ran.out,
        "1970-01-01T00:00:00.000Z main: one\n1970-01-01T00:00:01.000Z main: two\n\
         1970-01-01T00:00:01.000Z main: three\n"
    );
    let requests: Vec<String> = requests.iter().take(5).collect();
    assert!(
        requests[2].contains("/logs?stream=1&count=7 "),
        "{}",
        requests[2]
    );
    assert!(
        requests[3].contains("/logs?stream=1&count=1000&start=1005 "),
        "{}",
        requests[3]
    );
}

const FLEET: &str = r#"{"d":[{"id":4,"slug":"acme/pump","actor":{"__id":9}}]}"#;

/// Runs `fleet purge` for two devices that answer like this, in any order.
fn purged(
    answers: [(&str, &str); 2],
    arguments: &[&str],
) -> (crate::harness::CommandResult, Vec<String>) {
    let devices = r#"{"d":[
        {"id":7,"uuid":"0123456789abcdef0123456789abcdef","device_name":"we\u001bst","belongs_to__application":{"__id":4}},
        {"id":8,"uuid":"1123456789abcdef0123456789abcdef","device_name":"east","belongs_to__application":{"__id":4}}]}"#;
    let mut all = vec![answer("200 OK", "", FLEET), answer("200 OK", "", devices)];
    all.extend(answers.map(|(status, body)| answer(status, "", body)));
    let (url, requests) = recorded(all);
    let ran = at(&url).run(&[&["purge", "pump", "--yes"], arguments].concat());
    (ran, requests.iter().take(4).collect())
}

#[test]
fn a_fleet_that_is_purged_tells_of_each_device_how_it_did() {
    let emptied = ("200 OK", r#"{"Data":"OK","Error":""}"#);
    let (ran, requests) = purged([emptied, emptied], &["--force"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(ran.out.matches("emptied").count(), 2, "{}", ran.out);
    assert!(!ran.out.contains('\u{1b}'), "{:?}", ran.out);
    for request in &requests[2..] {
        assert!(request.contains("POST /supervisor/v1/purge "), "{request}");
        assert!(request.contains(r#""force":true"#), "{request}");
    }

    let locked = ("423 Locked", r#"{"Data":"","Error":"Updates are locked"}"#);
    let (ran, _) = purged([emptied, locked], &["--json"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    let report: Value = serde_json::from_str(&ran.out).expect("JSON");
    let devices = report["devices"].as_array().expect("devices");
    let errors: Vec<&str> = devices
        .iter()
        .filter_map(|it| it["error"].as_str())
        .collect();
    assert_eq!(errors.len(), 1, "{report}");
    assert!(errors[0].contains("an update lock holds"), "{report}");
    assert!(
        ran.err.contains("1 of 2 devices did not empty the volumes"),
        "{}",
        ran.err
    );

    let refused = ("403 Forbidden", r#""no right to change anything""#);
    let (ran, _) = purged([refused, refused], &[]);
    assert_eq!(ran.code, 3, "{}", ran.err);

    // No request is sent without confirmation.
    let devices = answer("200 OK", "", DEVICE);
    let (url, _) = recorded(vec![answer("200 OK", "", FLEET), devices]);
    let message = at(&url).refused(2, &["purge", "pump"]);
    assert!(message.contains("--yes"), "{message}");
}

const RELEASE: &str = r#"{"d":[{"id":5,"commit":"1111111111","raw_version":"1.0.0","belongs_to__application":{"__id":4}}]}"#;

/// The answers to an upload until its only part is sent.
fn until_the_part() -> Vec<String> {
    let begun = r#"{"asset":{"uuid":"abc","uploadParts":[
        {"url":"https://elsewhere.example/release-asset/v1/upload/abc/1","chunkSize":3,"partNumber":1}]}}"#;
    vec![
        answer("200 OK", "", RELEASE),
        answer("200 OK", "", r#"{"d":[]}"#),
        answer("201 Created", "", r#"{"id":6}"#),
        answer("200 OK", "", begun),
    ]
}

#[test]
fn a_part_that_is_lost_is_sent_again_and_an_upload_that_fails_leaves_nothing() {
    let stored = r#"{"filename":"f","href":"https://elsewhere.example/release-asset/v1/1","content_type":"text/plain","size":3}"#;
    let row = format!(
        r#"{{"d":[{{"id":6,"asset_key":"f","created_at":"2026-01-01T00:00:00.000Z","asset":{stored}}}]}}"#
    );
    let mut answers = until_the_part();
    answers.extend([
        answer("502 Bad Gateway", "", ""),
        answer("200 OK", "etag: \"part-1\"\r\n", ""),
        answer("200 OK", "", stored),
        answer("200 OK", "", &row),
    ]);
    let (url, requests) = recorded(answers);
    let ann = at(&url);
    std::fs::write(ann.home.path().join("f"), "abc").expect("a file");
    let made = ann.json(&["release-asset", "upload", "1.0.0", "f"]);
    assert_eq!(made["size"], json!(3));
    let requests: Vec<String> = requests.iter().take(8).collect();
    // Whatever host the cloud names, requests go to the cloud of the session.
    for request in &requests[4..6] {
        assert!(
            request.starts_with("PUT /release-asset/v1/upload/abc/1 "),
            "{request}"
        );
        assert!(request.ends_with("\r\n\r\nabc"), "{request}");
    }
    assert!(
        requests[6].contains(r#""ETag":"\"part-1\"""#),
        "{}",
        requests[6]
    );

    let mut answers = until_the_part();
    answers.extend([
        answer("400 Bad Request", "", r#""no""#),
        answer("204 No Content", "", ""),
        answer("200 OK", "", ""),
    ]);
    let (url, requests) = recorded(answers);
    let ann = at(&url);
    std::fs::write(ann.home.path().join("f"), "abc").expect("a file");
    let message = ann.refused(1, &["release-asset", "upload", "1.0.0", "f"]);
    assert!(message.contains("f was not uploaded"), "{message}");
    let requests: Vec<String> = requests.iter().take(7).collect();
    assert!(
        requests[5].starts_with("POST /v7/release_asset(6)/cancelUpload "),
        "{}",
        requests[5]
    );
    assert!(
        requests[6].starts_with("DELETE /v7/release_asset(6) "),
        "{}",
        requests[6]
    );
}

/// The row of a file of this size that is attached to a release.
fn stored(size: u64) -> String {
    format!(
        r#"{{"d":[{{"id":6,"asset_key":"f","created_at":"2026-01-01T00:00:00.000Z","asset":{{"filename":"../../f",
        "href":"https://elsewhere.example/release-asset/v1/1?key=k","content_type":"text/plain","size":{size}}}}}]}}"#
    )
}

#[test]
fn a_file_that_breaks_off_leaves_what_was_there() {
    for (size, expected) in [
        (9, "the download ended 6 bytes early"),
        (2, "more than the 2 bytes"),
    ] {
        let (url, requests) = recorded(vec![
            answer("200 OK", "", RELEASE),
            answer("200 OK", "", &stored(size)),
            answer("200 OK", "", "abc"),
        ]);
        let ann = at(&url);
        std::fs::write(ann.home.path().join("f"), "mine").expect("a file");
        let message = ann.refused(
            1,
            &["asset", "download", "1.0.0", "f", "-o", "f", "--overwrite"],
        );
        assert!(message.contains(expected), "{message}");
        let request = requests.iter().nth(2).expect("a request");
        assert!(
            request.starts_with("GET /release-asset/v1/1?key=k "),
            "{request}"
        );
        let left: Vec<_> = std::fs::read_dir(ann.home.path())
            .expect("a folder")
            .filter_map(|it| it.ok()?.file_name().into_string().ok())
            .collect();
        assert_eq!(left, ["f"]);
        assert_eq!(
            std::fs::read(ann.home.path().join("f")).expect("a file"),
            b"mine"
        );
    }
    let (url, _) = recorded(vec![
        answer("200 OK", "", RELEASE),
        answer("200 OK", "", &stored(3)),
    ]);
    let message = at(&url).refused(2, &["asset", "download", "1.0.0", "f"]);
    assert!(
        message.contains("`../../f` is not a valid file name here"),
        "{message}"
    );
}

/// `fleet fleets --json | head -1`
#[test]
fn a_reader_of_a_result_may_stop_early() {
    for (arguments, answers) in [
        (&["fleets", "--json"][..], vec![r#"{"d":[]}"#]),
        (
            &["asset", "download", "1.0.0", "f", "-o", "-"],
            vec![RELEASE, &stored(3), "abc"],
        ),
    ] {
        let answers = answers.into_iter().map(|body| answer("200 OK", "", body));
        let (url, _) = recorded(answers.collect());
        let (_, writer) = std::io::pipe().expect("a pipe");
        let ann = at(&url);
        let ended = ann.command(arguments).stdout(writer).output();
        let ended = ended.expect("fleet");
        assert_eq!(ended.status.code(), Some(0), "{arguments:?}: {ended:?}");
        assert!(ended.stderr.is_empty(), "{arguments:?}: {ended:?}");
    }
}

#[test]
fn a_result_that_cannot_be_written_is_an_error() {
    let (url, _) = recorded(vec![answer("200 OK", "", r#"{"d":[]}"#)]);
    let full = std::fs::File::create("/dev/full").expect("the device file");
    let ended = at(&url)
        .command(&["fleets", "--json"])
        .stdout(full)
        .output();
    let ended = ended.expect("fleet");
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    let message = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(
        message.contains("cannot write to standard output: No space left"),
        "{message}"
    );
}

/// `fleet fleets 2>&1 | head -1`
#[test]
fn a_failure_that_nobody_reads_keeps_its_exit_code() {
    let (_, writer) = std::io::pipe().expect("a pipe");
    let person = Person::new();
    let mut command = person.command(&["fleets"]);
    let command = command.stdout(writer.try_clone().expect("a second handle"));
    let ended = command.stderr(writer).status().expect("fleet");
    assert_eq!(ended.code(), Some(3));
}
