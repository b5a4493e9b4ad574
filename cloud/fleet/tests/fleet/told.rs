//! What is said to people, and what to programs.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc;

use serde_json::{Value, json};

use crate::harness::{Cloud, Person};

/// Answers that a cloud of a test gives, one a connection, in their order; the requests that came.
fn recorded(answers: Vec<String>) -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let (heard, requests) = mpsc::channel();
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
            let _ = heard.send(text);
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
    let told = at(&url).refused(1, &["fleets"]);
    assert!(told.contains("try again in 3600 s"), "{told}");
}

#[test]
fn what_is_no_fleet_cloud_is_told_so() {
    for (status, body, expected) in [
        ("200 OK", "<html>hello</html>", "is not what was asked for"),
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
        let told = at(&url).refused(1, &["fleets"]);
        assert!(told.contains(expected), "{told}");
    }
}

#[test]
fn a_program_is_told_failures_as_json() {
    let cloud = Cloud::start();
    let ann = Person::signed_in(&cloud);
    let told = ann.refused(4, &["show", "pump", "--json"]);
    let told: Value = serde_json::from_str(&told).expect("JSON");
    assert_eq!(told["error"], json!("there is no fleet `pump`"));
    assert_eq!(told["hint"], json!("`fleet fleets` lists them"));
}

#[test]
fn shells_complete_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let script = Person::new().done(&["completion", shell]);
        assert!(script.contains("provisioning"), "{shell}");
    }
    Person::new().refused(2, &["completion", "cmd"]);
    Person::new().refused(2, &["nonsense"]);
}

const DEVICE: &str = r#"{"d":[{"id":7,"uuid":"0123456789abcdef0123456789abcdef","device_name":"west","belongs_to__application":{"__id":4}}]}"#;

/// What a device is asked by a command, through a recorded cloud whose proxy answers so.
fn asked(arguments: &[&str], status: &str, body: &str) -> (crate::harness::Ran, String, Value) {
    let (url, requests) = recorded(vec![answer("200 OK", "", DEVICE), answer(status, "", body)]);
    let ran = at(&url).run(arguments);
    let request = requests.iter().nth(1).expect("a request of the proxy");
    let (head, body) = request.split_once("\r\n\r\n").expect("a body");
    let line = head.lines().next().unwrap_or_default().to_owned();
    (ran, line, serde_json::from_str(body).expect("JSON"))
}

#[test]
fn devices_are_asked_through_the_proxy() {
    let plain = json!({ "force": false });
    for (command, path, method, data) in [
        (&["reboot", "west"][..], "/v1/reboot", "POST", plain.clone()),
        (
            &["shutdown", "west", "--force"],
            "/v1/shutdown",
            "POST",
            json!({ "force": true }),
        ),
        (
            &["update", "west", "--force"],
            "/v1/update",
            "POST",
            json!({ "force": true }),
        ),
        (
            &["restart", "west"],
            "/v1/restart",
            "POST",
            json!({ "appId": 4, "force": false }),
        ),
        (
            &["restart", "west", "--service", "main"],
            "/v2/applications/4/restart-service",
            "POST",
            json!({ "serviceName": "main", "force": false }),
        ),
        (
            &["stop", "west", "-s", "main"],
            "/v2/applications/4/stop-service",
            "POST",
            json!({ "serviceName": "main", "force": false }),
        ),
        (
            &["purge", "west", "--yes"],
            "/v1/purge",
            "POST",
            json!({ "appId": 4, "force": false }),
        ),
        (&["blink", "west"], "/v1/blink", "POST", json!({})),
        (&["ping", "west"], "/ping", "GET", json!({})),
    ] {
        let (ran, line, body) = asked(&[&["device"], command].concat(), "200 OK", "OK");
        assert_eq!(ran.code, 0, "{command:?}: {}", ran.err);
        assert_eq!(line, format!("POST /supervisor{path} HTTP/1.1"));
        let uuid = "0123456789abcdef0123456789abcdef";
        assert_eq!(
            body,
            json!({ "uuid": uuid, "method": method, "data": data }),
            "{command:?}"
        );
        assert!(ran.out.starts_with("west (0123456) "), "{}", ran.out);
    }
}

#[test]
fn what_a_device_refuses_is_told_with_what_to_do() {
    for (status, body, code, expected) in [
        (
            "423 Locked",
            r#"{"Data":"","Error":"Updates are locked"}"#,
            1,
            "`--force` overrides update locks",
        ),
        (
            "404 Not Found",
            "\"No online device(s) found\"",
            1,
            "is not connected",
        ),
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
        let (ran, _, _) = asked(&["device", "restart", "west"], status, body);
        assert_eq!(ran.code, code, "{status}: {}", ran.err);
        assert!(ran.err.contains(expected), "{status}: {}", ran.err);
    }
}

#[test]
fn logs_are_told_with_the_names_of_services_and_of_one_alone() {
    let services = r#"{"d":[{"id":1,"service_name":"main"},{"id":2,"service_name":"web"}]}"#;
    let entry = |at: i64, message: &str, service: Value, system: bool| {
        json!({
            "message": message, "timestamp": at, "createdAt": at, "isSystem": system, "isStdErr": false,
            "serviceId": service,
        })
    };
    let history = json!([
        entry(0, "up", json!(1), false),
        entry(1, "a\u{1b}[2Jb", json!(2), false),
        entry(2, "Starting", Value::Null, true),
    ]);
    let history = history.to_string();
    let logs = |arguments: &[&str]| {
        let (url, requests) = recorded(vec![
            answer("200 OK", "", DEVICE),
            answer("200 OK", "", services),
            answer("200 OK", "", &history),
        ]);
        let told = at(&url).done(&[&["logs", "west"], arguments].concat());
        (told, requests.iter().nth(2).expect("a request"))
    };
    let (told, request) = logs(&["--tail", "50"]);
    assert!(
        request.starts_with("GET /device/v2/0123456789abcdef0123456789abcdef/logs?count=50 "),
        "{request}"
    );
    assert_eq!(
        told,
        "1970-01-01T00:00:00.000Z main: up\n1970-01-01T00:00:00.001Z web: a[2Jb\n\
         1970-01-01T00:00:00.002Z supervisor: Starting\n"
    );
    assert_eq!(
        logs(&["--service", "main"]).0,
        "1970-01-01T00:00:00.000Z main: up\n"
    );
    let (told, _) = logs(&["--tail", "1", "--json"]);
    assert_eq!(
        serde_json::from_str::<Value>(&told).expect("a line")["message"],
        json!("Starting")
    );
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
    // What came at the same moment comes again, and is told once.
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
