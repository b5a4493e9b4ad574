//! docs/device-api.md: each of its commands is run, and each answer on the page has to match the actual one.
//! `UPDATE_DOCS=1` writes the answers into the page.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Map, Value, json};
use tests::{HostJournal, RecordedCloud, Supervisor, distribution, guest, repository, until};

/// The path of the component of the page's service, in its commands.
const IMAGE: &str = "/srv/images/web.wasm";
/// How many items of a long list the page shows.
const SHOWN: usize = 1;
/// How many fields of a large object the page shows.
const FIELDS: usize = 14;
const MORE: &str = "…";

/// A command of the page and the answer below it.
struct Example {
    command: String,
    /// Status and content type, then the body.
    answer: String,
}

/// What a command printed.
struct CommandOutput {
    head: String,
    body: String,
}

fn page() -> PathBuf {
    repository().join("docs/device-api.md")
}

/// Returns the page's blocks of examples: their position in the text, and their content.
fn examples(text: &str) -> Vec<(std::ops::Range<usize>, Example)> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(begin) = text[from..].find("```console\n").map(|at| from + at + 11) {
        let end = begin + text[begin..].find("```").expect("a block ends");
        let lines: Vec<&str> = text[begin..end].lines().collect();
        let goes_on = |line: &&&str| line.ends_with('\\');
        let mut of_command = 1 + lines.iter().take_while(goes_on).count();
        // A quoted body may have several lines.
        let quotes = |lines: &[&str]| lines.join("\n").matches('\'').count();
        while quotes(&lines[..of_command]) % 2 == 1 {
            of_command += 1;
        }
        let command = lines[..of_command].join("\n");
        let command = command.strip_prefix("$ ").expect("a command").to_owned();
        let answer = lines[of_command..].join("\n");
        found.push((begin..end, Example { command, answer }));
        from = end + 3;
    }
    found
}

/// The device of the page: one app with one service, in local mode, with a cloud and a journal.
struct DocumentedExample {
    device: Supervisor,
    _cloud: RecordedCloud,
    _journal: HostJournal,
    key: String,
    /// How often the host was to go down.
    down: usize,
}

impl DocumentedExample {
    async fn start() -> Option<Self> {
        let cloud = RecordedCloud::start(&guest("guest")).await;
        cloud.change(|device| {
            device["config"] = json!({ "PLATFORM_SUPERVISOR_LOCAL_MODE": "true" });
        });
        let mut device = Supervisor::on_wasm()
            .config_json(cloud.config_json())
            .start()
            .await;
        // The host's files are read at the start.
        device.terminate().await;
        let host = device.host_root();
        let board = json!({ "slug": "raspberrypi4-64", "arch": "aarch64" });
        fs::write(host.join("mnt/boot/device-type.json"), board.to_string()).expect("a board");
        fs::create_dir_all(host.join("etc")).expect("a folder");
        fs::write(
            host.join("etc/os-release"),
            "PRETTY_NAME=\"Example OS 2.5\"\n",
        )
        .expect("a system");
        device.start_again().await;
        let mut journal = HostJournal::below(device.host_root())?;
        for message in ["begins", "listens on port 8080", "has answered"] {
            journal.log("web.service", "web", message.as_bytes()).await;
        }
        until("local mode", || async {
            let target = json!({ "local": { "name": "bench", "apps": { "1": {
                "name": "shop", "commit": "c1", "releaseId": "1", "volumes": { "data": {} },
                "networks": {}, "services": { "1": {
                    "serviceName": "web", "imageId": 1, "image": format!("file:{}", guest("guest").display()),
                    "command": ["wait"], "volumes": ["data:/data"], "environment": { "GREETING": "hello" },
                    "labels": { "io.platform.features.supervisor-api": "1" },
                } },
            } } } });
            let answer = device.post("/v2/local/target-state", &target).await;
            if answer.status == 200 { Ok(()) } else { Err(answer) }
        })
        .await;
        device.until_applied().await;
        let key = device.key().to_owned();
        Some(DocumentedExample {
            device,
            _cloud: cloud,
            _journal: journal,
            key,
            down: 0,
        })
    }

    /// Runs a command of the page as a reader would, and waits until its effects are complete.
    async fn run(&mut self, command: &str, lines: usize) -> CommandOutput {
        let real = guest("guest").display().to_string();
        let script = command.replace(IMAGE, &real).replacen(
            "curl ",
            "curl -sS -w '\\n# %{http_code} %{content_type}\\n' ",
            1,
        );
        let mut child = Command::new("sh")
            .args(["-c", &format!("exec {script}")])
            .env("supervisor", self.device.base())
            .env("key", &self.key)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let output = child.stdout.take().expect("its output");
        let endless = command.contains("curl -N");
        let printed = tokio::task::spawn_blocking(move || {
            let output = BufReader::new(output).lines().map_while(Result::ok);
            let printed: Vec<String> = if endless {
                output.take(lines).collect()
            } else {
                output.collect()
            };
            // It has ended, or would continue for as long as it is read.
            let _ = child.kill();
            let _ = child.wait();
            printed.join("\n")
        });
        let printed = tokio::time::timeout(tests::DEADLINE, printed);
        let printed = printed.await.expect("an answer").expect("no panic");
        let ran = if endless {
            let media = if command.contains("/v3/events") {
                "text/event-stream"
            } else {
                "application/x-ndjson"
            };
            CommandOutput {
                head: format!("# 200 {media}; charset=utf-8"),
                body: self.shown(&printed),
            }
        } else {
            let (body, head) = printed.rsplit_once("\n#").expect("a status");
            CommandOutput {
                head: format!("#{head}").trim_end().to_owned(),
                body: self.shown(body.trim_end_matches('\n')),
            }
        };
        self.settle(command, &ran).await;
        ran
    }

    /// Replaces names of this machine by those of the page.
    fn shown(&self, text: &str) -> String {
        let image = guest("guest").display().to_string();
        let root = self.device.host_root().display().to_string();
        let layout = distribution().display().to_string();
        text.replace(&image, IMAGE)
            .replace(&layout, "/opt/supervisor")
            .replace(&root, "")
            .replace(&self.key, "0f1e2d3c4b5a69788796a5b4c3d2e1f0")
    }

    async fn settle(&mut self, command: &str, ran: &CommandOutput) {
        if command.contains("regenerate-api-key") {
            self.key.clone_from(&ran.body);
        }
        if command.contains("/v1/reboot") || command.contains("/v1/shutdown") {
            assert!(ran.head.starts_with("# 202"), "{}", ran.head);
            self.down += 1;
            until("the rehearsal", || async {
                let log = self.device.log();
                if log.matches("rehearsal: ").count() >= self.down {
                    Ok(())
                } else {
                    Err(log)
                }
            })
            .await;
        }
        let stopped = command.contains("/stop");
        until("the service to run again", || async {
            // With the present key.
            let request = self.device.request_without_key("GET", "/v2/state/status");
            let request = request.bearer_auth(&self.key);
            let status = self.device.send(request).await.json();
            let runs = status["containers"][0]["status"] == "Running";
            if status["appState"] == "applied" && (runs || stopped) {
                Ok(())
            } else {
                Err(status)
            }
        })
        .await;
    }
}

/// Formats JSON for the page: laid out, with long lists cut short.
fn laid_out(body: &str, depth: usize) -> String {
    match serde_json::from_str::<Value>(body) {
        Ok(value @ (Value::Object(_) | Value::Array(_))) => {
            let shown = cut(value, depth);
            let one_line = one_line(&shown);
            if one_line.len() <= 110 {
                one_line
            } else {
                format!("{shown:#}")
            }
        }
        _ => body.to_owned(),
    }
}

/// Formats it with a space after each colon and comma, as people write it.
fn one_line(value: &Value) -> String {
    let inner = |items: Vec<String>, open: char, close: char| {
        if items.is_empty() {
            format!("{open}{close}")
        } else {
            format!("{open}{}{close}", items.join(", "))
        }
    };
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| {
                format!("{}: {}", Value::from(name.as_str()), one_line(value))
            });
            inner(fields.collect(), '{', '}')
        }
        Value::Array(items) => inner(items.iter().map(one_line).collect(), '[', ']'),
        other => other.to_string(),
    }
}

fn cut(value: Value, depth: usize) -> Value {
    match value {
        Value::Array(_) | Value::Object(_) if depth == 0 => MORE.into(),
        Value::Array(items) => {
            let more = items.len() > SHOWN + 1;
            let shown = items.into_iter().take(if more { SHOWN } else { SHOWN + 1 });
            let more = more.then(|| MORE.into());
            shown.map(|item| cut(item, depth - 1)).chain(more).collect()
        }
        Value::Object(fields) => {
            let more = fields.len() > FIELDS;
            let shown = fields.into_iter().take(if more { 2 } else { FIELDS });
            let more = more.then(|| (MORE.to_owned(), MORE.into()));
            let shown = shown.map(|(name, value)| (name, cut(value, depth - 1)));
            shown.chain(more).collect::<Map<_, _>>().into()
        }
        // Values that differ by machine and run are replaced by plausible ones.
        other => other,
    }
}

/// Returns how an answer differs from `expected`, which is on the page.
fn differs(expected: &Value, actual: &Value, at: &str) -> Option<String> {
    let wrong = |why: &str| Some(format!("{at}: {why}: {actual}"));
    match (expected, actual) {
        (Value::String(more), _) if more == MORE => None,
        (Value::Object(expected), Value::Object(actual)) => {
            let names =
                |fields: &Map<String, Value>| fields.keys().cloned().collect::<BTreeSet<_>>();
            if !expected.contains_key(MORE) && names(expected) != names(actual) {
                return wrong("other fields");
            }
            let shown = expected.iter().filter(|(name, _)| *name != MORE);
            shown
                .into_iter()
                .find_map(|(name, expected)| match actual.get(name) {
                    Some(actual) => differs(expected, actual, &format!("{at}.{name}")),
                    None => wrong(&format!("no `{name}`")),
                })
        }
        (Value::Array(expected), Value::Array(items)) => {
            let cut_short = expected.last().is_some_and(|last| last == MORE);
            if !cut_short && expected.len() != items.len() {
                return wrong("another length");
            }
            let shown = expected.iter().filter(|item| *item != MORE);
            let mut pairs = shown.zip(items);
            pairs.find_map(|(expected, actual)| differs(expected, actual, &format!("{at}[]")))
        }
        (Value::String(expected), Value::String(given)) => (settled(expected) != settled(given))
            .then(|| format!("{at}: not `{expected}`: {actual}")),
        (Value::Number(_), Value::Number(_)) => None,
        (expected, actual) => {
            (expected != actual).then(|| format!("{at}: not {expected}: {actual}"))
        }
    }
}

/// Returns a text without the parts that differ from run to run: digits, and long words of hexadecimal digits.
fn settled(text: &str) -> String {
    let mut settled = String::new();
    for word in text.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let hex = word.chars().filter(char::is_ascii_hexdigit).count();
        if hex >= 12 && word.chars().count() - hex <= 1 {
            settled.push_str("HEX");
        } else {
            let zeroed = word
                .chars()
                .map(|c| if c.is_ascii_digit() { '0' } else { c });
            settled.extend(zeroed);
        }
    }
    while settled.contains("00") {
        settled = settled.replace("00", "0");
    }
    settled
}

/// Replaces values that differ from machine to machine by those of the page.
fn anywhere(body: &str) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(body) else {
        return body.to_owned();
    };
    for (field, sample) in [
        ("api_port", json!(48484)),
        ("ip_address", json!("192.0.2.10")),
        ("mac_address", json!("02:00:00:00:00:01")),
    ] {
        if let Some(value) = value.get_mut(field) {
            *value = sample;
        }
    }
    value.to_string()
}

fn compare(example: &Example, ran: &CommandOutput) -> Result<(), String> {
    let (head, body) = example
        .answer
        .split_once('\n')
        .unwrap_or((&example.answer, ""));
    let failed = |why: String| Err(format!("`{}`: {why}", example.command));
    if head != ran.head {
        return failed(format!("the page has `{head}`, and it was `{}`", ran.head));
    }
    let actual = anywhere(&ran.body);
    let json = |text: &str| serde_json::from_str::<Value>(text).ok();
    let differs = match (json(body), json(&actual)) {
        (Some(expected), Some(actual)) => differs(&expected, &actual, "the body"),
        _ => (settled(body) != settled(&actual)).then(|| format!("not {body:?}: {actual:?}")),
    };
    differs.map_or(Ok(()), failed)
}

#[tokio::test]
async fn every_answer_of_the_page_is_the_one_that_comes() {
    let text = fs::read_to_string(page()).expect("the page");
    let Some(mut shown) = DocumentedExample::start().await else {
        return;
    };
    let update = std::env::var_os("UPDATE_DOCS").is_some();
    let (mut written, mut from) = (String::new(), 0);
    let mut wrong = Vec::new();
    for (place, example) in examples(&text) {
        let lines = example.answer.lines().count().saturating_sub(1).max(1);
        let ran = shown.run(&example.command, lines).await;
        if let Err(why) = compare(&example, &ran) {
            wrong.push(why);
        }
        let depth = if example.command.contains("openapi") {
            3
        } else {
            16
        };
        let body = laid_out(&anywhere(&ran.body), depth);
        let answer = format!("{}\n{body}", ran.head);
        written.push_str(&text[from..place.start]);
        written.push_str(&format!("$ {}\n{}\n", example.command, answer.trim_end()));
        from = place.end;
    }
    written.push_str(&text[from..]);
    if update {
        fs::write(page(), written).expect("the page is written");
        return;
    }
    assert!(
        wrong.is_empty(),
        "docs/device-api.md is not what the device answers (UPDATE_DOCS=1 rewrites it):\n{}",
        wrong.join("\n")
    );
}

/// Returns `GET /v1/apps/:appId` as in the description.
fn template(path: &str) -> String {
    let segments = path
        .split('/')
        .map(|segment| match segment.strip_prefix(':') {
            Some(name) => format!("{{{name}}}"),
            None => segment.to_owned(),
        });
    segments.collect::<Vec<_>>().join("/")
}

#[tokio::test]
async fn the_page_has_each_operation_and_the_test_that_proves_it() {
    let text = fs::read_to_string(page()).expect("the page");
    let device = Supervisor::on_wasm().start().await;
    let description = device.description().await.expect("a description");
    let described: BTreeSet<String> = description
        .operations()
        .map(|(method, path, _)| format!("{method} {path}"))
        .collect();
    let headings = text.lines().filter_map(|line| line.strip_prefix("### "));
    let shown: BTreeSet<String> = headings.map(template).collect();
    assert_eq!(shown, described, "the headings of the page");

    let (_, table) = text.split_once("## What proves it").expect("the table");
    let mut proven = BTreeSet::new();
    for row in table.lines().filter_map(|line| line.strip_prefix("| ")) {
        let (what, named) = row.split_once(" | ").expect("two columns");
        if what == "of the API" {
            continue;
        }
        proven.insert(template(what));
        let tests: Vec<&str> = named.split('`').skip(1).step_by(2).collect();
        assert!(!tests.is_empty(), "{what}");
        for test in tests {
            let (file, name) = test.split_once("::").expect(test);
            let suite = repository().join("tests/tests").join(file);
            let path = if suite.exists() {
                suite
            } else {
                repository().join(file)
            };
            let source = fs::read_to_string(&path).unwrap_or_default();
            assert!(
                source.contains(&format!("fn {name}(")),
                "{what}: no test `{test}`"
            );
        }
    }
    let unproven: Vec<&String> = described.difference(&proven).collect();
    assert!(unproven.is_empty(), "{unproven:?}");
}
