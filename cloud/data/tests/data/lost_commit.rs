//! A connection that is lost during a commit.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use data::testing::on_fresh_postgres;
use data::testing::sql;
use data::{DataError, Database, Effect, Options};

use crate::way::{DEADLINE, Traffic, Way};

#[tokio::test]
async fn a_commit_whose_connection_was_lost_is_reported() {
    on_fresh_postgres(async |url| {
        let way = Way::to(&url).await;
        let options = Options::default().with_connections(2);
        let database = Database::open(way.address(), &options).await.unwrap();
        let calls = Arc::new(Mutex::new(0));
        let counting = calls.clone();
        database.listen(move |effects| {
            assert_eq!(effects, [Effect::ActorsChanged(vec![7])]);
            *counting.lock().unwrap() += 1;
        });
        let mut transaction = database.begin().await.unwrap();
        let insert = sql("INSERT INTO platform_setting (name, value) VALUES ('a', 'b')");
        transaction.execute(&insert).await.unwrap();
        transaction.effect(Effect::ActorsChanged(vec![7]));
        way.set(Traffic::EndsAtCommit);
        let error = transaction.commit().await.unwrap_err();
        assert!(matches!(error, DataError::Lost(_)), "{error:?}");
        assert_eq!(*calls.lock().unwrap(), 1, "at once");
        let again = async {
            while *calls.lock().unwrap() < 2 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let again = tokio::time::timeout(DEADLINE, again).await;
        again.expect("told again, when the server must have done it or not");
    })
    .await;
}
