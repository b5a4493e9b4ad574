//! Requests that nobody would send: both databases return the same answer or refuse alike, and neither fails.

mod grammar;

use std::cell::Cell;

use data::query::{QueryContext, ReadStatement, read};
use data::testing::FreshDatabases;
use data::{DataError, Database, Options};
use fuzz::{corpus, mutated};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use resources::Version;
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::fixture;
use crate::query::{ann, setting, split};

/// Requests that once failed with a 500, or had different answers from the two databases.
const CORPUS: &str = include_str!("fuzz/corpus.txt");
/// Requests that clients send.
const REQUESTS: &str = include_str!("../../../odata/tests/requests.txt");
/// Words of the language.
const WORDS: &[&str] = &[
    "$filter=",
    "$select=",
    "$expand=",
    "$orderby=",
    "&$top=1",
    "/any(x:",
    "/all(x:",
    "/$count",
    "x/id",
    " and ",
    " or ",
    "not ",
    " eq ",
    " in (",
    "null",
    "true",
    "datetime'",
    "duration'",
    "now()",
    "length(",
    "substring(",
    "concat(",
    "@a",
    "@a=1",
    "%20",
    "%",
    "&",
    ";",
    "?",
    "/",
    "$links/",
    "*",
    "''",
    "-",
    "add ",
    " div 0",
    "5.5",
];

/// A database of each kind with the same rows, while a target runs.
struct Databases {
    runtime: Runtime,
    all: Vec<Database>,
    fresh: FreshDatabases,
}

impl Databases {
    fn made() -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let (all, fresh) = runtime.block_on(async {
            let fresh = FreshDatabases::new().await;
            let mut all = Vec::new();
            for url in &fresh.urls {
                let options = Options::default().with_connections(2);
                let database = Database::open(url, &options).await.expect("a database");
                fixture::cloud(&database).await;
                all.push(database);
            }
            (all, fresh)
        });
        Databases {
            runtime,
            all,
            fresh,
        }
    }

    /// Checks that both answers are the same; returns whether they are rows or a number, rather than a refusal.
    fn ask(&self, version: Version, url: &str) -> Result<bool, TestCaseError> {
        let answers = self
            .all
            .iter()
            .map(|database| self.runtime.block_on(answer(database, version, url)));
        let answers = answers
            .collect::<Result<Vec<_>, _>>()
            .map_err(TestCaseError::fail)?;
        if let [one, other] = answers.as_slice() {
            prop_assert_eq!(one, other, "of SQLite and PostgreSQL");
        }
        Ok(answers.iter().all(Result::is_ok))
    }
}

impl Drop for Databases {
    fn drop(&mut self) {
        self.runtime.block_on(async {
            for database in &self.all {
                database.close().await;
            }
            self.fresh.remove().await;
        });
    }
}

/// Returns the answer to a GET: rows, a number, or the reason of a refusal.
async fn answer(
    database: &Database,
    version: Version,
    url: &str,
) -> Result<Result<Value, String>, String> {
    let (path, query) = split(url);
    let request = match odata::parse(path, query) {
        Ok(request) => request,
        Err(error) => return Ok(Err(error.message)),
    };
    let caller = ann();
    let setting = QueryContext {
        model: version.model(),
        ..setting(&caller, database.dialect())
    };
    let statement = match read(&setting, &request) {
        Ok(statement) => statement,
        Err(broken @ data::query::QueryError::Broken(_)) => return Err(broken.to_string()),
        Err(refused) => return Ok(Err(refused.to_string())),
    };
    let refused = |error: DataError| match error {
        DataError::OutOfRange(_) | DataError::TooSlow(_) => Ok(Err(error.to_string())),
        failed => Err(format!("{:?} failed: {failed:?}", database.dialect())),
    };
    Ok(Ok(match statement {
        ReadStatement::Records(select) => match database.texts(&select).await {
            Ok(rows) => {
                let rows = rows.into_iter().flatten();
                let rows = rows.map(|row| {
                    serde_json::from_str(&row).map_err(|error| format!("{error}: {row}"))
                });
                Value::Array(rows.collect::<Result<_, _>>()?)
            }
            Err(error) => return refused(error),
        },
        ReadStatement::Count(select) => match database.row(&select).await {
            Ok(row) => Value::from(row.and_then(|row| row.id(0).ok())),
            Err(error) => return refused(error),
        },
        ReadStatement::Metadata => Value::Null,
    }))
}

fn versions() -> impl Strategy<Value = Version> {
    prop_oneof![
        4 => Just(Version::V7),
        1 => select(&[Version::V1, Version::V2, Version::V3, Version::V4, Version::V5, Version::V6][..]),
    ]
}

#[test]
fn requests_made_by_the_grammar_are_answered_alike() {
    let databases = Databases::made();
    for line in corpus(CORPUS) {
        let (version, url) = line.split_once(' ').expect(&line);
        let version = version.parse().expect(&line);
        let answers = databases.ask(version, url);
        assert!(answers.is_ok(), "{line}: {answers:?}");
    }
    let inputs = (versions(), vec(any::<u16>(), 0..90))
        .prop_map(|(version, numbers)| (version, grammar::request(version.model(), &numbers)));
    let (tried, answered) = (Cell::new(0), Cell::new(0));
    fuzz::run("odata-grammar", 800, &inputs, |(version, url)| {
        tried.set(tried.get() + 1);
        answered.set(answered.get() + u32::from(databases.ask(version, &url)?));
        Ok(())
    });
    // If the cloud did not understand the generated requests, the test would prove nothing.
    let (tried, answered) = (tried.get(), answered.get());
    assert!(
        3 * answered > tried,
        "only {answered} of {tried} were understood"
    );
    println!("{answered} of {tried} were understood");
}

#[test]
fn requests_with_a_few_changes_are_answered_or_refused_alike() {
    let databases = Databases::made();
    let requests = corpus(REQUESTS)
        .into_iter()
        .filter(|url| !url.ends_with("/canAccess"));
    let inputs = (versions(), mutated(requests.collect(), WORDS));
    fuzz::run("odata-text", 800, &inputs, |(version, url)| {
        databases.ask(version, &url).map(drop)
    });
}
