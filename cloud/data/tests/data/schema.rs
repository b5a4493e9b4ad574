//! Tables and what holds between their rows.

use data::testing::{on_both, on_both_at};
use data::{Built, DataError, Database, Effect, Options};
use sea_query::{Alias, InsertStatement, Query, Value};

/// A row of one table with these values.
fn row<const N: usize>(table: &str, values: [(&str, Value); N]) -> InsertStatement {
    let mut insert = Query::insert();
    let (columns, values): (Vec<_>, Vec<_>) = values
        .into_iter()
        .map(|(column, value)| (Alias::new(column), value.into()))
        .unzip();
    insert
        .into_table(Alias::new(table))
        .columns(columns)
        .values_panic(values)
        .returning_col(Alias::new("id"));
    insert
}

fn tag(device: i64, key: &str) -> InsertStatement {
    row(
        "device_tag",
        [
            ("created_at", 1.into()),
            ("modified_at", 1.into()),
            ("device", device.into()),
            ("tag_key", key.into()),
            ("value", "".into()),
        ],
    )
}

#[tokio::test]
async fn a_database_is_opened_again_as_it_was_left_by_several_programs_at_once() {
    on_both_at(|url, _| async move {
        let options = Options::default();
        let opened =
            futures::future::join_all((0..4).map(|_| Database::open(&url, &options))).await;
        for database in opened {
            database.unwrap().close().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_link_to_nothing_is_refused() {
    on_both(|database| async move {
        let error = database.execute(&tag(77, "place")).await.unwrap_err();
        assert!(
            matches!(error, DataError::Dangling { .. } | DataError::ForeignKey),
            "{error:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn what_must_be_unique_is_named_by_its_fields() {
    on_both(|database| async move {
        let architecture = |slug: &str| {
            row(
                "cpu_architecture",
                [
                    ("created_at", 1.into()),
                    ("modified_at", 1.into()),
                    ("slug", slug.into()),
                ],
            )
        };
        let mut transaction = database.begin().await.unwrap();
        let first = transaction
            .row(&architecture("rpi"))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(first.id(0).unwrap(), 1);
        let error = transaction.row(&architecture("rpi")).await.unwrap_err();
        assert_eq!(error.to_string(), "\"slug\" must be unique.");
        let DataError::Unique { resource, fields } = error else {
            panic!("{error:?}")
        };
        assert_eq!(
            (resource.as_str(), fields),
            ("cpu_architecture", vec!["slug".to_owned()])
        );
    })
    .await;
}

#[tokio::test]
async fn effects_are_told_once_a_transaction_is_committed_and_never_of_one_that_is_not() {
    on_both(|database| async move {
        let (sender, receiver) = std::sync::mpsc::channel();
        database.listen(move |effects| sender.send(effects.to_vec()).unwrap());
        let mut dropped = database.begin().await.unwrap();
        dropped.effect(Effect::FleetsChanged(vec![1]));
        drop(dropped);
        let mut kept = database.begin().await.unwrap();
        kept.effect(Effect::FleetsChanged(vec![2]));
        kept.effect(Effect::FleetsChanged(vec![2]));
        kept.commit().await.unwrap();
        assert_eq!(
            receiver.try_iter().collect::<Vec<_>>(),
            [vec![Effect::FleetsChanged(vec![2])]]
        );
    })
    .await;
}

#[tokio::test]
async fn what_a_transaction_changed_is_seen_by_nobody_until_it_is_committed() {
    on_both(|database| async move {
        let count = Built::new("SELECT COUNT(*) FROM actor", []);
        let actor = || {
            row(
                "actor",
                [("created_at", 1.into()), ("modified_at", 1.into())],
            )
        };
        let mut transaction = database.begin().await.unwrap();
        transaction.execute(&actor()).await.unwrap();
        assert_eq!(
            database
                .row(&count)
                .await
                .unwrap()
                .unwrap()
                .number(0)
                .unwrap(),
            Some(0)
        );
        transaction.commit().await.unwrap();
        assert_eq!(
            database
                .row(&count)
                .await
                .unwrap()
                .unwrap()
                .number(0)
                .unwrap(),
            Some(1)
        );
        let mut undone = database.begin().await.unwrap();
        undone.execute(&actor()).await.unwrap();
        undone.rollback().await.unwrap();
        assert_eq!(
            database
                .row(&count)
                .await
                .unwrap()
                .unwrap()
                .number(0)
                .unwrap(),
            Some(1)
        );
    })
    .await;
}

#[tokio::test]
async fn an_address_that_is_none_says_so_without_its_password() {
    for (url, expected) in [
        (
            "mysql://me:secret@host/db",
            "`mysql://me@host/db` is no address of a database",
        ),
        (
            "sqlite::memory:",
            "`sqlite::memory:` is no address of a database",
        ),
    ] {
        let Err(error) = Database::open(url, &Options::default()).await else {
            panic!("{url} was opened")
        };
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}
