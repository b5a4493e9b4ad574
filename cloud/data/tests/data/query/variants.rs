//! The same text with values of other types: what one request leaves prepared on a connection changes nothing of what
//! the next one means.

use data::query::{Caller, Read, read};
use data::{Database, Options};
use proptest::prelude::Rng as _;
use proptest::test_runner::{RngAlgorithm, TestRng};

use super::{setting, split};

/// What stands in the place of each constant.
const OTHERS: [&str; 6] = ["5", "5.0", "5.5", "'5'", "null", "true"];
/// Variants of one request at most, chosen at random.
const OF_ONE: usize = 18;

/// Answers requests and their variants in random order on one connection, which keeps their statements, and each alone,
/// by one that keeps none.
pub(crate) async fn agree(url: &str, caller: &Caller, requests: &[&str]) {
    let mut random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut variants: Vec<String> = Vec::new();
    for request in requests {
        let mut of_one = variants_of(request);
        shuffle(&mut of_one, &mut random);
        of_one.truncate(OF_ONE);
        variants.push((*request).to_owned());
        variants.extend(of_one);
    }
    shuffle(&mut variants, &mut random);
    let keeping = open(url, Options::default().prepared).await;
    let forgetting = open(url, 0).await;
    // Twice: what came first is there for all of them the second time.
    for variant in variants.iter().chain(&variants) {
        let (together, alone) = (
            answer(&keeping, caller, variant).await,
            answer(&forgetting, caller, variant).await,
        );
        assert_eq!(together, alone, "{variant}");
        if let Err(why) = &alone {
            assert!(!why.starts_with("database"), "{variant}: {why}");
        }
    }
    keeping.close().await;
    forgetting.close().await;
}

async fn open(url: &str, prepared: usize) -> Database {
    let options = Options {
        prepared,
        ..Options::default().with_connections(1)
    };
    Database::open(url, &options).await.expect("a database")
}

async fn answer(database: &Database, caller: &Caller, url: &str) -> Result<Vec<String>, String> {
    let (path, query) = split(url);
    let refused = |error: &dyn std::fmt::Display| format!("refused: {error}");
    let request = odata::parse(path, query).map_err(|error| refused(&error))?;
    let setting = setting(caller, database.dialect());
    let statement = read(&setting, &request, path, query).map_err(|error| refused(&error))?;
    let select = match statement {
        Read::Records(select) => select,
        Read::Count(select) => {
            let row = database.row(&select).await;
            let row = row.map_err(failed)?.expect("a row");
            return Ok(vec![row.id(0).expect("a number").to_string()]);
        }
        Read::Metadata => return Ok(Vec::new()),
    };
    let texts = database.texts(&select).await.map_err(failed)?;
    Ok(texts.into_iter().flatten().collect())
}

/// A value that is out of range is the request's fault; anything else is not.
fn failed(error: data::DataError) -> String {
    match error {
        data::DataError::OutOfRange(_) => format!("refused: {error}"),
        error => format!("database: {error:?}"),
    }
}

/// The request with each of its constants in turn as each of the others.
fn variants_of(request: &str) -> Vec<String> {
    let begin = request.find('?').unwrap_or(request.len());
    let mut variants = Vec::new();
    for (from, to) in constants(request, begin) {
        for other in OTHERS {
            variants.push(format!("{}{other}{}", &request[..from], &request[to..]));
        }
    }
    variants
}

/// Where constants stand behind `begin`.
fn constants(text: &str, begin: usize) -> Vec<(usize, usize)> {
    let bytes = text.as_bytes();
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
    let mut found = Vec::new();
    let mut at = begin;
    while at < bytes.len() {
        let from = at;
        if bytes[at] == b'\'' {
            at += 1;
            while at < bytes.len() && bytes[at] != b'\'' {
                at += 1;
            }
            at = (at + 1).min(bytes.len());
            // `datetime'…'` stays what it is.
            if from == 0 || !is_word(bytes[from - 1]) {
                found.push((from, at));
            }
        } else if is_word(bytes[at]) {
            while at < bytes.len() && is_word(bytes[at]) {
                at += 1;
            }
            let word = &text[from..at];
            let is_number = word
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'.');
            let is_escape = from > 0 && bytes[from - 1] == b'%';
            if !is_escape && (is_number || matches!(word, "null" | "true" | "false")) {
                found.push((from, at));
            }
        } else {
            at += 1;
        }
    }
    found
}

fn shuffle(items: &mut [String], random: &mut TestRng) {
    for last in (1..items.len()).rev() {
        let with = random.next_u64() % (last as u64 + 1);
        items.swap(last, usize::try_from(with).expect("an index"));
    }
}

#[test]
fn constants_of_a_request_are_found() {
    let text = "/device(7)?$filter=a9 eq 5.5 and b in ('x y',null) and c gt datetime'2026'&$top=3";
    let found: Vec<&str> = constants(text, text.find('?').expect("a query"))
        .into_iter()
        .map(|(from, to)| &text[from..to])
        .collect();
    assert_eq!(found, ["5.5", "'x y'", "null", "3"]);
}

/// What another tenant asked before changes nothing (C4).
#[tokio::test]
async fn c4_what_was_asked_before_changes_nothing_of_what_a_request_means() {
    data::testing::on_both_at(async |url, database| {
        crate::fixture::cloud(&database).await;
        let requests = [
            "/device/$count?$filter=id lt 5.5",
            "/device/$count?$filter=id lt 9",
            "/device/$count?$filter=id gt 5.5",
            "/device/$count?$filter=id gt 5",
            "/application?$select=id&$filter=is_directly_accessible_by__user/any(dau:1 eq 1.0)",
            "/application?$select=id&$filter=is_directly_accessible_by__user/any(dau:1 eq 1)",
            "/device_tag?$select=id&$filter=id gt 999999999.5",
            "/device_tag?$select=id&$filter=id gt 999999999",
            "/device?$select=id&$filter=1 eq 1",
            "/device?$select=id&$filter=true eq false",
            "/device?$select=id&$filter=cpu_temp gt 45.5 or id in (7,7.5,'8')",
            "/device?$select=id&$filter=substring(device_name,1,2) eq 'al'&$top=5&$skip=0",
        ];
        agree(&url, &super::ann(), &requests).await;
    })
    .await;
}
