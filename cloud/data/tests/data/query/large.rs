//! The maximum size of an answer, the same on both databases.

use data::query::{Caller, ReadStatement, read};
use data::testing::on_both;
use data::testing::sql;
use data::{DataError, Database};

use super::{ann, setting, split};
use crate::fixture;

/// Gives device 7 this many tags with values of this many characters.
async fn tags(database: &Database, count: i64, length: usize) {
    let clear = sql("DELETE FROM device_tag WHERE device = ?").with(7_i64);
    database.execute(&clear).await.expect("no tags");
    // PostgreSQL has no `INSERT` behind this otherwise.
    let insert = sql(
        "INSERT INTO device_tag (id, created_at, modified_at, device, tag_key, value) \
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) \
         SELECT 100000 + i, 0, 0, 7, 'k' || CAST(i AS TEXT), ? FROM n",
    );
    let insert = insert.with(count).with("x".repeat(length));
    database.execute(&insert).await.expect("tags");
}

async fn rows(database: &Database, caller: &Caller, url: &str) -> Result<String, DataError> {
    let (path, query) = split(url);
    let request = odata::parse(path, query).expect(url);
    let setting = setting(caller, database.dialect());
    let ReadStatement::Records(select) = read(&setting, &request).expect(url) else {
        panic!("{url} has no rows");
    };
    let texts = database.texts(&select).await?;
    Ok(texts.into_iter().flatten().collect())
}

#[tokio::test]
async fn an_expanded_link_has_a_bound_of_rows_and_bytes() {
    on_both(async |database| {
        fixture::cloud(&database).await;
        let whole = "/device?$select=id&$expand=device_tag($select=id)";
        let wide = "/device?$select=id&$expand=device_tag";
        let behind = "/application?$select=id&$expand=owns__device($select=id;$expand=device_tag)";
        tags(&database, 10_000, 1).await;
        for url in [whole, wide, behind] {
            let answer = rows(&database, &ann(), url).await.expect(url);
            assert!(answer.contains("{\"id\":110000"), "{url}");
        }
        tags(&database, 10_001, 1).await;
        for url in [whole, wide, behind] {
            let answer = rows(&database, &ann(), url).await;
            assert!(
                matches!(answer, Err(DataError::TooLarge(_))),
                "{url}: {answer:?}"
            );
        }
        let page = "/device?$select=id&$expand=device_tag($select=id;$top=10000;$skip=1)";
        let answer = rows(&database, &ann(), page).await.expect(page);
        assert!(answer.contains("{\"id\":110001}"), "{page}");
        // Few rows of many bytes.
        tags(&database, 2000, 10_000).await;
        for url in [wide, behind] {
            let answer = rows(&database, &ann(), url).await;
            assert!(matches!(answer, Err(DataError::TooLarge(_))), "{url}");
        }
        rows(&database, &ann(), whole).await.expect(whole);
        tags(&database, 1000, 10_000).await;
        rows(&database, &ann(), wide).await.expect(wide);
    })
    .await;
}
