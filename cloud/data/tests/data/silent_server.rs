//! A PostgreSQL server that stops responding while its connections stay open.
//!
//! Each pool here has one connection, so that a later statement shows that its place in the pool was freed.

use std::time::Duration;

use data::testing::{on_fresh_postgres, sql};
use data::{DataError, Database, Options};
use tokio::time::timeout;

use crate::way::{DEADLINE, Traffic, Way};

const NUMBER: &str = "SELECT 1";

async fn on_the_way(test: impl AsyncFn(&Way, &Database)) {
    on_fresh_postgres(async |url| {
        let way = Way::to(&url).await;
        let mut options = Options::default()
            .with_connections(1)
            .with_statement_timeout(Duration::from_secs(1));
        // Longer than a statement and its grace.
        options.devices.wait = Duration::from_secs(8);
        let database = Database::open(way.address(), &options)
            .await
            .expect("a database");
        test(&way, &database).await;
    })
    .await;
}

/// Checks that once the server responds again, so does the pool's only connection, or its replacement.
async fn answers(way: &Way, database: &Database) {
    way.set(Traffic::Flows);
    let rows = timeout(DEADLINE, database.rows(&sql(NUMBER))).await;
    assert_eq!(rows.expect("a place in the pool").expect("rows").len(), 1);
}

#[tokio::test]
async fn a_silent_server_ends_what_waits_for_it_and_keeps_no_connection() {
    on_the_way(async |way, database| {
        way.set(Traffic::Stalls);
        let rows = timeout(DEADLINE, database.rows(&sql(NUMBER))).await;
        let error = rows.expect("an answer in time").unwrap_err();
        // The connection may have been on its way back into the pool: then none is free until there is a new one.
        let away = matches!(error, DataError::Silent(_) | DataError::Busy(_));
        assert!(away, "{error:?}");
        answers(way, database).await;
    })
    .await;
}

#[tokio::test]
async fn a_statement_that_its_caller_leaves_keeps_no_connection_of_a_silent_server() {
    on_the_way(async |way, database| {
        way.set(Traffic::Stalls);
        let left = timeout(Duration::from_millis(100), database.rows(&sql(NUMBER))).await;
        assert!(left.is_err());
        // The waiting statement gets the place, though the server still does not respond.
        let rows = timeout(DEADLINE, database.rows(&sql(NUMBER))).await;
        let error = rows.expect("an answer in time").unwrap_err();
        let away = matches!(error, DataError::Silent(_) | DataError::Busy(_));
        assert!(away, "{error:?}");
        answers(way, database).await;
    })
    .await;
}

#[tokio::test]
async fn a_transaction_of_a_silent_server_ends_and_keeps_no_connection() {
    on_the_way(async |way, database| {
        let insert = sql("INSERT INTO platform_setting (name, value) VALUES ('a', 'b')");
        let mut transaction = database.begin().await.unwrap();
        transaction.execute(&insert).await.unwrap();
        way.set(Traffic::Stalls);
        let error = timeout(DEADLINE, transaction.row(&sql(NUMBER))).await;
        let error = error.expect("an answer in time").unwrap_err();
        assert!(matches!(error, DataError::Silent(_)), "{error:?}");
        let error = transaction.commit().await.unwrap_err();
        assert!(matches!(error, DataError::Silent(_)), "{error:?}");
        answers(way, database).await;

        // A transaction left open: the path still buffers its ROLLBACK.
        let mut transaction = database.begin().await.unwrap();
        transaction.row(&sql(NUMBER)).await.unwrap();
        way.set(Traffic::Stalls);
        drop(transaction);
        let begun = timeout(DEADLINE, database.begin()).await;
        assert!(begun.expect("an answer in time").is_err());
        answers(way, database).await;
        let there = sql("SELECT value FROM platform_setting WHERE name = 'a'");
        assert_eq!(database.texts(&there).await.unwrap(), []);
    })
    .await;
}
