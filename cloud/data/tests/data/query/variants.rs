//! The same text with values of other types: a statement that one request leaves prepared on a connection does not
//! affect the next request.

use data::query::{Caller, ReadStatement, read};
use data::{Database, Options};
use fuzz::variants::with_variants;

use super::{setting, split};

/// The maximum number of variants of one request, chosen at random.
const OF_ONE: usize = 18;

/// Executes requests and their variants in random order on one connection, which keeps prepared statements, and
/// compares each with one that keeps none.
pub(crate) async fn agree(url: &str, caller: &Caller, requests: &[&str]) {
    let variants = with_variants(requests, OF_ONE);
    let keeping = open(url, Options::default().prepared).await;
    let forgetting = open(url, 0).await;
    // Twice: in the second round, every statement has been prepared before.
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
    let statement = read(&setting, &request).map_err(|error| refused(&error))?;
    let select = match statement {
        ReadStatement::Records(select) => select,
        ReadStatement::Count(select) => {
            let row = database.row(&select).await;
            let row = row.map_err(failed)?.expect("a row");
            return Ok(vec![row.id(0).expect("a number").to_string()]);
        }
        ReadStatement::Metadata => return Ok(Vec::new()),
    };
    let texts = database.texts(&select).await.map_err(failed)?;
    Ok(texts.into_iter().flatten().collect())
}

/// Describes a failure: a value that is out of range is the request's fault, anything else is not.
fn failed(error: data::DataError) -> String {
    match error {
        data::DataError::OutOfRange(_) => format!("refused: {error}"),
        error => format!("database: {error:?}"),
    }
}

/// Earlier requests of another tenant change nothing (C4).
#[tokio::test]
async fn earlier_requests_do_not_change_the_meaning_of_a_request() {
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
