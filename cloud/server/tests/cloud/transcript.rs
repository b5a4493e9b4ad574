//! Requests in a file with their answers, run on both databases. `UPDATE_EXPECT=1` rewrites the answers.
//!
//! ```text
//! # 59 a line for people
//! ann POST /v7/device_tag
//!   {"device":<calm>,"tag_key":"place","value":"roof"}
//!   as place
//! 201
//! {"id": <place>, …}
//! ```
//!
//! A line begins with the caller; `<name>` is the number of a row of the scene, or of one that a request created `as`
//! that. Values that differ from run to run are shown by their kind: `<time>`, `<uuid>`. `…` stands for further fields.

use jiff::Timestamp;
use reqwest::{Method, StatusCode};
use resources::{Model, Resource, Step, Type, Version};
use serde_json::Value;

use crate::harness::{Cloud, read};
use crate::scene::{Names, scene};

/// Fields that are shown for a row with many fields.
const TELLING: [&str; 12] = [
    "id",
    "slug",
    "app_name",
    "uuid",
    "device_name",
    "handle",
    "tag_key",
    "name",
    "value",
    "commit",
    "service_name",
    "note",
];
/// Up to this number, all fields are shown.
const FEW: usize = 8;

/// A request of a file.
#[derive(Debug)]
struct TranscriptRequest {
    who: String,
    method: Method,
    url: String,
    body: Option<String>,
    made: Option<String>,
    /// The lines before it.
    comments: Vec<String>,
}

/// Parses the requests of a text, without their answers.
fn requests(text: &str) -> Vec<TranscriptRequest> {
    let mut found = Vec::new();
    for block in text.split("\n\n") {
        let mut comments = Vec::new();
        let mut request: Option<TranscriptRequest> = None;
        for line in block.lines() {
            if let Some(request) = &mut request {
                if let Some(name) = line.strip_prefix("  as ") {
                    request.made = Some(name.to_owned());
                } else if let Some(body) = line.strip_prefix("  {") {
                    request.body = Some(format!("{{{body}"));
                } else {
                    // The answer.
                    break;
                }
            } else if line.starts_with('#') {
                comments.push(line.to_owned());
            } else if !line.is_empty() {
                let mut words = line.splitn(3, ' ');
                let mut word = || words.next().expect(line).to_owned();
                request = Some(TranscriptRequest {
                    who: word(),
                    method: word().parse().expect("a method"),
                    url: word(),
                    body: None,
                    made: None,
                    comments: std::mem::take(&mut comments),
                });
            }
        }
        match (request, found.last_mut()) {
            (Some(request), _) => found.push(request),
            (None, _) => panic!("a block without a request: {comments:?}"),
        }
    }
    found
}

/// Returns the caller and address of each request in a text that changes nothing.
pub(crate) fn reads(text: &str) -> Vec<(String, String)> {
    let reads = requests(text).into_iter();
    reads
        .filter(|request| request.method == Method::GET)
        .map(|request| (request.who, request.url))
        .collect()
}

/// Returns the file with the answers of a fresh scene; reads are repeated in every older version.
pub(crate) async fn picture(cloud: &Cloud, text: &str) -> String {
    let mut names = scene(cloud).await;
    let mut blocks = Vec::new();
    for request in requests(text) {
        let (status, body) = send(cloud, &names, &request, &request.url).await;
        if let Some(name) = &request.made {
            let resource = resource_of(&request.url, resources::v7());
            let resource = resource.expect("a resource that rows are made of");
            let id = body["id"]
                .as_i64()
                .unwrap_or_else(|| panic!("{}: {status} {body}", request.url));
            names.call(name, resource.name, id);
        }
        let mut lines = request.comments.clone();
        lines.push(format!(
            "{} {} {}",
            request.who, request.method, request.url
        ));
        lines.extend(request.body.iter().map(|body| format!("  {body}")));
        lines.extend(request.made.iter().map(|name| format!("  as {name}")));
        lines.push(status.as_u16().to_string());
        lines.extend(shown(&names, &request.url, &body));
        blocks.push(lines.join("\n"));
        if request.method == Method::GET && status == StatusCode::OK {
            in_older_versions(cloud, &names, &request, &body).await;
        }
    }
    blocks.join("\n\n") + "\n"
}

async fn send(
    cloud: &Cloud,
    names: &Names,
    transcript_request: &TranscriptRequest,
    url: &str,
) -> (StatusCode, Value) {
    let url = names.filled(url);
    let request = match transcript_request.who.as_str() {
        "nobody" => cloud.ask(transcript_request.method.clone(), &url),
        who => names
            .by(cloud, who)
            .ask(transcript_request.method.clone(), &url),
    };
    let request = match &transcript_request.body {
        None => request,
        Some(body) => request
            .header("content-type", "application/json")
            .body(names.filled(body)),
    };
    read(request.send().await.expect("an answer")).await
}

/// Checks that the same rows are read in each older version that has the names, with their addresses.
async fn in_older_versions(
    cloud: &Cloud,
    names: &Names,
    request: &TranscriptRequest,
    today: &Value,
) {
    let Some(rest) = request.url.strip_prefix("/v7") else {
        return;
    };
    // The versions in between are in `versions.rs`; they answer like the fifth.
    for version in [Version::V1, Version::V5, Version::V6] {
        let url = format!("{}{rest}", version.path());
        let (status, then) = send(cloud, names, request, &url).await;
        // A filter on a field that had another name is not understood, and a device's target was its pin.
        if request.url.contains("$filter=is_pinned_on__release") {
            assert_eq!(status, StatusCode::BAD_REQUEST, "{url}: {then}");
            continue;
        }
        assert_eq!(status, StatusCode::OK, "{url}: {then}");
        match (&today["d"], &then["d"]) {
            (Value::Array(now), Value::Array(rows)) => {
                assert_eq!(now.len(), rows.len(), "{url}: {then}");
                for (now, row) in now.iter().zip(rows) {
                    assert_eq!(now.get("id"), row.get("id"), "{url}");
                    let linked = request.url.contains("$links");
                    let address = row["__metadata"]["uri"].as_str().unwrap_or_default();
                    let addressed = address.starts_with(version.path());
                    assert!(
                        addressed || linked || now["id"].is_null() && now.get("id").is_some(),
                        "{url}: {row}"
                    );
                }
            }
            (now, then) => assert_eq!(now, then, "{url}"),
        }
    }
}

/// Returns the resource whose rows an address shows.
fn resource_of<'a>(url: &str, model: &'a Model) -> Option<&'a Resource> {
    let mut quoted = false;
    let path: String = url
        .replace("%27", "'")
        .chars()
        .take_while(|c| {
            quoted ^= *c == '\'';
            quoted || *c != '?'
        })
        .collect();
    let path = path.strip_prefix("/v")?.split_once('/')?.1;
    let mut resource: Option<&Resource> = None;
    let mut quoted = false;
    let pieces = path.split(|c| {
        quoted ^= c == '\'';
        c == '/' && !quoted
    });
    for piece in pieces.filter(|piece| !piece.starts_with('$')) {
        let name = piece.split('(').next().unwrap_or_default();
        resource = match resource {
            None => model.resource(name),
            Some(_) if name == "canAccess" => resource,
            Some(from) => model
                .navigation(from, name)
                .and_then(|it| model.resource(it.to)),
        };
    }
    resource
}

/// Formats an answer for the file: one row per line.
fn shown(names: &Names, url: &str, body: &Value) -> Vec<String> {
    let resource = resource_of(url, resources::v7());
    let text = |value: &Value| one_line(&named(names, resource, value));
    match body {
        Value::Null => Vec::new(),
        Value::Object(fields) if fields.len() == 1 && fields.contains_key("d") => {
            match &body["d"] {
                Value::Array(rows) if rows.is_empty() => vec!["no rows".to_owned()],
                Value::Array(rows) => rows.iter().map(text).collect(),
                other => vec![format!("d: {other}")],
            }
        }
        other => vec![text(other)],
    }
}

/// Replaces numbers in a value by names, and values that differ from run to run by their kinds.
fn named(names: &Names, resource: Option<&Resource>, value: &Value) -> Value {
    let Value::Object(fields) = value else {
        return settled(value);
    };
    let many = fields.len() > FEW;
    let mut shown = serde_json::Map::new();
    for (name, value) in fields {
        let field = resource.and_then(|it| it.find_field(name));
        let to = resource
            .and_then(|it| resources::v7().navigation(it, name))
            .and_then(|it| resources::v7().resource(it.to));
        let table = resource.map_or("", |it| it.table);
        let to_one = field.map(|it| it.kind);
        let value = match value {
            Value::Array(rows) if to.is_some() => {
                rows.iter().map(|row| named(names, to, row)).collect()
            }
            Value::Number(_) if name == "id" => {
                names.name(table, value.as_i64().unwrap_or_default()).into()
            }
            Value::Object(link) if link.contains_key("__id") => match to_one {
                Some(Type::Link { to, .. }) if !many => {
                    let id = link["__id"].as_i64().unwrap_or_default();
                    serde_json::json!({ "__id": names.name(to, id) })
                }
                _ => continue,
            },
            Value::String(text) if name == "device_name" && !NAMED.contains(&text.as_str()) => {
                assert_eq!(text.split('-').count(), 2, "a made up name: {text}");
                "<two words>".into()
            }
            other
                if many
                    && !TELLING.contains(&name.as_str())
                    && !is_counted(resource, other, name) =>
            {
                continue;
            }
            other => settled(other),
        };
        shown.insert(name.clone(), value);
    }
    if shown.len() < fields.len() {
        shown.insert("…".to_owned(), Value::Null);
    }
    Value::Object(shown)
}

/// Whether a link to many rows is shown as their number.
fn is_counted(resource: Option<&Resource>, value: &Value, name: &str) -> bool {
    let to = resource.and_then(|it| it.find_navigation(name));
    value.is_number() && to.is_some_and(|it| it.step != Step::One(it.name))
}

/// Replaces values that differ from run to run.
fn settled(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), settled(value)))
            .collect(),
        Value::Array(items) => items.iter().map(settled).collect(),
        Value::String(text) => settled_text(text).into(),
        other => other.clone(),
    }
}

fn settled_text(text: &str) -> String {
    let is_now = |time: Timestamp| {
        let age = Timestamp::now()
            .as_millisecond()
            .abs_diff(time.as_millisecond());
        age < 86_400_000
    };
    if text.parse::<Timestamp>().is_ok_and(is_now) {
        return "<time>".to_owned();
    }
    let mut settled = String::new();
    for word in text.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let (word, end) = match word.chars().next_back() {
            Some(end) if !end.is_ascii_alphanumeric() => word.split_at(word.len() - end.len_utf8()),
            _ => (word, ""),
        };
        let digits = word.chars().all(|c| c.is_ascii_digit());
        let hex = word.chars().all(|c| c.is_ascii_hexdigit());
        let random =
            hex && word.len() == 32 && word.chars().filter(|c| *c == 'a' || *c == '0').count() < 16;
        settled.push_str(match word.len() {
            13 if digits => "<milliseconds>",
            32 if random && !KNOWN.contains(&word) => "<uuid>",
            _ => word,
        });
        settled.push_str(end);
    }
    settled
}

/// Names of devices.
const NAMED: [&str; 4] = [
    "calm-river",
    "café & co; (x), y+z",
    "lone-hill",
    "pump-west",
];

/// Long hexadecimal words of the scene.
const KNOWN: [&str; 4] = [
    "cccccccccccccccccccccccccccccccc",
    "5f0c4d4e9b7a4c8fa1b2c3d4e5f60718",
    "7cf02a62bdc94e6fa4d5cb9b1d94a5c1",
    "0123456789abcdef0123456789abcdef",
];

/// Adds a space after each colon and comma, and shows names of rows without quotes.
fn one_line(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| match name.as_str() {
                "…" => "…".to_owned(),
                name => format!("{}: {}", Value::from(name), one_line(value)),
            });
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => {
            format!(
                "[{}]",
                items.iter().map(one_line).collect::<Vec<_>>().join(", ")
            )
        }
        Value::String(text) if text.starts_with('<') && text.ends_with('>') => text.clone(),
        other => other.to_string(),
    }
}
