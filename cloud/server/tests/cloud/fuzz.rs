//! Bodies that nobody would send, over HTTP on both databases: each is accepted or refused with a 4xx, and the database
//! is intact afterwards.

use std::cell::{Cell, RefCell};

use data::testing::{FreshDatabases, text};
use data::{Database, Dialect, Options};
use fuzz::{corpus, mutated};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use reqwest::Method;
use resources::{Resource, Type, Version};
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;

use crate::harness::{Cloud, PATIENCE};
use crate::scene::{Names, scene};

/// Reports and log lines in the format of devices: the method, the path, and the body.
const REPORTS: &str = include_str!("fuzz/reports.txt");
const WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"\"",
    "null",
    "true",
    "-1",
    "1.5",
    "1e400",
    "9223372036854775807",
    "\"id\":",
    "\"apps\":{",
    "\"services\":{",
    "\"status\":",
    "\"releases\":{",
    "\"image\":",
    "\"api_port\":",
    "\"is_online\":true",
    "\"uuid\":",
    "\"local\":",
    "\\u0000",
    "\\ud800",
    "\"timestamp\":",
    "\"message\":",
    "\"tag_key\":",
    "\"value\":",
    "\"7cf02a62bdc94e6fa4d5cb9b1d94a5c1\":{",
    "{\"a\":",
];
/// So no request is refused by the rate limit.
const WITHOUT_LIMITS: &str = "[limits]\nrequests_per_minute = 1000000000";

/// A cloud on a database of each kind, for the duration of a target.
struct Clouds {
    runtime: Runtime,
    all: Vec<(Cloud, Names)>,
    fresh: FreshDatabases,
    successes: Cell<u32>,
    sent: Cell<u32>,
}

impl Clouds {
    fn made() -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let (all, fresh) = runtime.block_on(async {
            let fresh = FreshDatabases::new().await;
            let mut all = Vec::new();
            for url in &fresh.urls {
                let cloud = Cloud::start_with(url, WITHOUT_LIMITS).await;
                let names = scene(&cloud).await;
                all.push((cloud, names));
            }
            (all, fresh)
        });
        Clouds {
            runtime,
            all,
            fresh,
            successes: Cell::new(0),
            sent: Cell::new(0),
        }
    }

    /// Sends a request to each cloud.
    fn send(
        &self,
        who: &str,
        method: &Method,
        path: &str,
        body: &str,
    ) -> Result<(), TestCaseError> {
        for (cloud, names) in &self.all {
            let request = names
                .by(cloud, who)
                .ask(method.clone(), &names.filled(path));
            let request = request
                .header("content-type", "application/json")
                .body(names.filled(body))
                .timeout(PATIENCE);
            let answer = self.runtime.block_on(async {
                let answer = request.send().await?;
                Ok::<_, reqwest::Error>((answer.status(), answer.text().await?))
            });
            let (status, text) = answer
                .map_err(|error| TestCaseError::fail(format!("{}: {error:?}", cloud.database)))?;
            prop_assert!(
                !status.is_server_error(),
                "{status} of {}: {text}",
                cloud.database
            );
            self.sent.set(self.sent.get() + 1);
            self.successes
                .set(self.successes.get() + u32::from(status.is_success()));
        }
        Ok(())
    }

    /// Checks the databases after all requests.
    fn check(&self, least: u32) {
        let (sent, successes) = (self.sent.get(), self.successes.get());
        println!("{successes} of {sent} were taken");
        assert!(
            successes * least > sent || sent < SHORTEST_ROUND,
            "only {successes} of {sent} were taken: nothing is shown"
        );
        for (cloud, _) in &self.all {
            self.runtime.block_on(whole(&cloud.database));
        }
    }
}

/// Checks the integrity of an SQLite database; PostgreSQL guarantees its own.
pub(crate) async fn whole(url: &str) {
    let options = Options::default().with_connections(1);
    let database = Database::open(url, &options).await.expect("the database");
    if database.dialect() == Dialect::Sqlite {
        for (statement, expected) in [
            (
                "SELECT integrity_check FROM pragma_integrity_check",
                &[Some("ok".to_owned())][..],
            ),
            (
                "SELECT \"table\" || ' ' || rowid FROM pragma_foreign_key_check",
                &[],
            ),
        ] {
            let found = database.texts(&text(statement)).await;
            assert_eq!(found.expect("an answer"), expected, "{statement}");
        }
    }
    database.close().await;
}

impl Drop for Clouds {
    fn drop(&mut self) {
        self.all.clear();
        self.runtime.block_on(self.fresh.remove());
    }
}

/// Returns a value for a field, often a valid one.
fn value(kind: Type, choice: u16, text: &str) -> Value {
    let fitting = match kind {
        Type::Integer | Type::Link { .. } => json!(i64::from(choice % 9)),
        Type::BigInteger => json!(choice.to_string()),
        Type::Boolean => json!(choice.is_multiple_of(2)),
        Type::Text { max, .. } => json!(text.chars().take(max).collect::<String>()),
        Type::Word(words) => json!(words[usize::from(choice) % words.len()]),
        Type::Timestamp => json!("2026-01-02T03:04:05.678Z"),
        Type::Json { .. } | Type::JsonText { .. } => {
            json!({ "services": { "a": { "image": text } } })
        }
    };
    match choice % 41 {
        40 => Value::Null,
        39 => json!(i64::MAX),
        38 => json!(-1.5e300),
        37 => json!([[[]]]),
        36 => json!({ "__id": 1 }),
        35 => json!(text.repeat(4000)),
        34 => json!("\u{0}"),
        33 => json!(text),
        32 => json!(u64::MAX),
        _ => fitting,
    }
}

/// Returns a body for rows of a resource.
fn body(resource: &'static Resource, choices: &[u16], text: &str) -> String {
    let mut fields = Map::new();
    for (field, choice) in resource.fields.iter().zip(choices) {
        // Usually the required fields; otherwise some.
        let needed = !field.nullable && matches!(field.default, resources::Default::None);
        if needed && choice % 16 != 0 || choice % 5 == 0 {
            fields.insert(field.name.to_owned(), value(field.kind, choice / 5, text));
        }
    }
    Value::Object(fields).to_string()
}

fn written() -> impl Strategy<Value = (&'static str, Method, String, String)> {
    let version = prop_oneof![4 => Just(Version::V7), 1 => select(&[Version::V1, Version::V5, Version::V6][..])];
    let resource = version.prop_flat_map(|version| {
        let resources = version.model().resources();
        (Just(version), 0..resources.len())
            .prop_map(|(version, at)| (version, &version.model().resources()[at]))
    });
    let text = prop_oneof![
        "[a-z]{1,12}",
        ".{0,20}",
        Just("1.2.3".to_owned()),
        Just("PLATFORM_X".to_owned())
    ];
    let who = prop_oneof![5 => Just("ann"), 1 => Just("calm"), 1 => Just("bob")];
    (
        who,
        resource,
        vec(any::<u16>(), 60),
        text,
        0_u8..12,
        1_u8..12,
    )
        .prop_map(|(who, (version, resource), choices, text, verb, id)| {
            let at = format!("{}/{}", version.path(), resource.name);
            let body = body(resource, &choices, &text);
            match verb {
                0..=5 => (who, Method::POST, at, body),
                6..=8 => (who, Method::PATCH, format!("{at}({id})"), body),
                9 => (who, Method::PATCH, format!("{at}?$filter=id eq {id}"), body),
                10 => (who, Method::POST, at, body.replace('}', ",")),
                // People are not deleted, or nobody could send further requests.
                _ if [
                    "user",
                    "organization",
                    "organization_membership",
                    "actor",
                    "api_key",
                ]
                .contains(&resource.table) =>
                {
                    (who, Method::PATCH, at, "[]".to_owned())
                }
                _ => (who, Method::DELETE, format!("{at}({id})"), String::new()),
            }
        })
}

/// With fewer requests, the share of accepted ones means nothing.
const SHORTEST_ROUND: u32 = 500;

/// The number of requests to one pair of clouds: deletions make later requests less and less useful.
const REQUESTS_OF_A_ROUND: u32 = 10_000;

#[test]
fn any_body_of_a_write_is_accepted_or_refused() {
    let clouds = RefCell::new(Clouds::made());
    fuzz::run("bodies", 300, &written(), |(who, method, path, body)| {
        if clouds.borrow().sent.get() >= REQUESTS_OF_A_ROUND {
            clouds.borrow().check(50);
            clouds.replace(Clouds::made());
        }
        clouds.borrow().send(who, &method, &path, &body)
    });
    clouds.borrow().check(50);
}

#[test]
fn any_report_of_a_device_is_accepted_or_refused() {
    let clouds = Clouds::made();
    let reports = corpus(REPORTS);
    for report in &reports {
        let sent = reported(&clouds, report);
        assert!(sent.is_ok(), "{report}: {sent:?}");
    }
    fuzz::run("reports", 300, &mutated_reports(reports), |report| {
        reported(&clouds, &report)
    });
    clouds.check(50);
}

/// Changes only the bodies.
fn mutated_reports(reports: Vec<String>) -> impl Strategy<Value = String> {
    let by_address = reports.into_iter().map(|report| {
        let at = report.find(['{', '[']).expect("a body");
        let address = report[..at].to_owned();
        mutated(vec![report[at..].to_owned()], WORDS)
            .prop_map(move |body| format!("{address}{body}"))
            .boxed()
    });
    proptest::strategy::Union::new(by_address.collect::<Vec<_>>())
}

fn reported(clouds: &Clouds, report: &str) -> Result<(), TestCaseError> {
    let mut words = report.splitn(3, ' ');
    let mut word = || words.next().unwrap_or_default();
    let (method, path, body) = (word(), word(), word());
    clouds.send("calm", &method.parse().expect("a method"), path, body)
}
