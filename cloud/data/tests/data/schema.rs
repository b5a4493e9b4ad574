//! Tables and their constraints.

use data::testing::{on_both, on_both_at, text};
use data::{DataError, Database, Effect, Options, SystemPurpose, SystemStatement};
use sea_query::{Alias, InsertStatement, Query, Value};

/// A row of one table with these values.
fn row<const N: usize>(
    table: &str,
    values: [(&str, Value); N],
) -> SystemStatement<InsertStatement> {
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
    SystemPurpose::Rules.statement(insert)
}

fn tag(device: i64, key: &str) -> SystemStatement<InsertStatement> {
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
async fn a_unique_constraint_is_named_by_its_fields() {
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
async fn listeners_receive_effects_only_after_the_transaction_is_committed() {
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
async fn changes_of_a_transaction_are_invisible_until_it_is_committed() {
    on_both(|database| async move {
        let count = text("SELECT COUNT(*) FROM actor");
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
            "`mysql://me@host/db` is not an address of a database",
        ),
        (
            "sqlite::memory:",
            "`sqlite::memory:` is not an address of a database",
        ),
    ] {
        let Err(error) = Database::open(url, &Options::default()).await else {
            panic!("{url} was opened")
        };
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}

/// Returns the result of opening a database after a change by others.
async fn opened_after(url: &str, database: &Database, change: &str) -> Result<Database, String> {
    let changed = database.execute(&text(change)).await;
    changed.expect(change);
    let opened = Database::open(url, &Options::default()).await;
    opened.map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_database_of_an_earlier_version_gets_what_it_lacks() {
    on_both_at(|url, database| async move {
        for before in [
            "ALTER TABLE device DROP COLUMN note",
            "ALTER TABLE device DROP COLUMN is_undervolted",
            "DROP TABLE device_tag",
            "DROP INDEX \"unique:service:application,service_name\"",
            "DROP VIEW user__has_direct_access_to__application",
        ] {
            let removed = database.execute(&text(before)).await;
            removed.unwrap_or_else(|error| panic!("{before}: {error:?}"));
        }
        database
            .execute(&text(
                "DELETE FROM platform_setting WHERE name LIKE 'view %'",
            ))
            .await
            .unwrap();
        let again = Database::open(&url, &Options::default()).await.unwrap();
        for now in [
            "SELECT note, is_undervolted FROM device",
            "SELECT value FROM device_tag",
            "SELECT id FROM user__has_direct_access_to__application",
        ] {
            again.rows(&text(now)).await.unwrap();
        }
        let error = again.execute(&tag(77, "place")).await.unwrap_err();
        assert!(
            matches!(error, DataError::Dangling { .. } | DataError::ForeignKey),
            "the link is checked again: {error:?}"
        );
        again.close().await;
    })
    .await;
}

#[tokio::test]
async fn columns_of_a_later_version_are_accepted_unless_they_require_a_value() {
    on_both_at(|url, database| async move {
        opened_after(&url, &database, "ALTER TABLE device ADD COLUMN later TEXT")
            .await
            .unwrap()
            .close()
            .await;
        opened_after(
            &url,
            &database,
            "ALTER TABLE device ADD COLUMN more TEXT NOT NULL DEFAULT 'x'",
        )
        .await
        .unwrap()
        .close()
        .await;
        let error = opened_after(
            &url,
            &database,
            "CREATE TABLE mine (id BIGINT PRIMARY KEY, x TEXT NOT NULL)",
        )
        .await;
        error.unwrap().close().await;
    })
    .await;
}

#[tokio::test]
async fn a_table_that_does_not_fit_is_refused_with_what_does_not() {
    on_both_at(|url, database| async move {
        database
            .execute(&text("DROP TABLE release_tag"))
            .await
            .unwrap();
        let error = opened_after(
            &url,
            &database,
            "CREATE TABLE release_tag (id BIGINT PRIMARY KEY, tag_key TEXT)",
        )
        .await
        .err()
        .unwrap();
        assert!(
            error.contains(
                "the column `tag_key` of the table `release_tag` accepts null, but must not"
            ) || error.contains("`release_tag`"),
            "{error}"
        );
    })
    .await;
}

#[tokio::test]
async fn a_statement_that_takes_too_long_is_cut_short() {
    on_both_at(|url, _| async move {
        let timeout = std::time::Duration::from_millis(300);
        let options = Options::default().with_statement_timeout(timeout);
        let database = Database::open(&url, &options).await.unwrap();
        let endless = "WITH RECURSIVE n(x) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT x + 1 FROM n) \
                       SELECT count(*) FROM n";
        let error = database.rows(&text(endless)).await.unwrap_err();
        assert!(matches!(error, DataError::TooSlow(_)), "{error:?}");
        let mut transaction = database.begin().await.unwrap();
        let endless = text(endless);
        let error = transaction.rows(&endless).await.unwrap_err();
        assert!(matches!(error, DataError::TooSlow(_)), "{error:?}");
        drop(transaction);
        database.begin().await.unwrap().commit().await.unwrap();
        let fine = database.texts(&text("SELECT 'fine'")).await.unwrap();
        assert_eq!(fine, [Some("fine".to_owned())]);
        database.close().await;
    })
    .await;
}

/// A filter along the fleets of a user once took five seconds on a nearly empty database.
#[tokio::test]
async fn postgresql_does_not_compile_statements_before_it_runs_them() {
    on_both(|database| async move {
        if database.dialect() == data::Dialect::Postgres {
            let statement = text("SELECT current_setting('jit')");
            let texts = database.texts(&statement).await.unwrap();
            assert_eq!(texts, [Some("off".to_owned())]);
        }
    })
    .await;
}

#[tokio::test]
async fn a_stream_has_every_row_and_ends_with_its_reader() {
    use futures::StreamExt;
    on_both(|database| async move {
        let many = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 5000) \
                    SELECT CAST(x AS TEXT) FROM n";
        let mut all = database.stream(&text(many));
        let mut count = 0;
        while let Some(text) = all.next().await {
            count += 1;
            assert_eq!(text.unwrap(), Some(count.to_string()));
        }
        assert_eq!(count, 5000);
        // More streams than there are connections, each dropped after its first row.
        for _ in 0..20 {
            let mut left = database.stream(&text(many));
            assert!(left.next().await.is_some_and(|text| text.is_ok()));
        }
        assert!(database.texts(&text(many)).await.is_ok());
    })
    .await;
}

#[tokio::test]
async fn a_stream_that_is_read_too_slowly_breaks_off_and_gives_its_connection_back() {
    use futures::StreamExt;
    on_both_at(|url, _| async move {
        let options = Options {
            stream_timeout: std::time::Duration::from_millis(300),
            ..Options::default().with_connections(1)
        };
        let database = Database::open(&url, &options).await.unwrap();
        let many = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 5000) \
                    SELECT CAST(x AS TEXT) FROM n";
        let mut slow = database.stream(&text(many));
        assert_eq!(slow.next().await.unwrap().unwrap().as_deref(), Some("1"));
        // There is one connection, which the stream occupies until it fails.
        let fine = database.texts(&text("SELECT 'fine'")).await.unwrap();
        assert_eq!(fine, [Some("fine".to_owned())]);
        let rest: Vec<_> = slow.collect().await;
        assert!(rest.len() < 4000, "{} rows came", rest.len());
        assert!(
            matches!(rest.last(), Some(Err(DataError::Unread))),
            "{:?}",
            rest.last()
        );
        database.close().await;
    })
    .await;
}

#[tokio::test]
async fn programs_that_make_a_secret_at_once_get_the_same_one() {
    on_both(|database| async move {
        let readers = (0..6).map(|at| {
            let database = database.clone();
            async move {
                let mine = format!("secret {at}");
                data::setting::read_or_write(&database, "signing", &mine)
                    .await
                    .unwrap()
            }
        });
        let got = futures::future::join_all(readers).await;
        assert!(got.iter().all(|one| *one == got[0]), "{got:?}");
    })
    .await;
}

#[tokio::test]
async fn a_statement_that_nobody_waits_for_gives_its_connection_back() {
    on_both_at(|url, _| async move {
        // Its limit is far off: it must end because the caller is gone.
        let options = Options::default()
            .with_connections(2)
            .with_statement_timeout(std::time::Duration::from_secs(3600));
        let database = Database::open(&url, &options).await.unwrap();
        if database.dialect() == data::Dialect::Postgres {
            // There the server notices when the connection is closed.
            return;
        }
        let endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n";
        for _ in 0..6 {
            let endless = text(endless);
            let mut left = Box::pin(database.rows(&endless));
            for _ in 0..100 {
                assert!(futures::poll!(left.as_mut()).is_pending());
                tokio::task::yield_now().await;
            }
        }
        let fine = database.texts(&text("SELECT 'fine'")).await.unwrap();
        assert_eq!(fine, [Some("fine".to_owned())]);
        let endless = text(endless);
        for _ in 0..3 {
            let mut transaction = database.begin().await.unwrap();
            let mut left = Box::pin(transaction.rows(&endless));
            for _ in 0..100 {
                assert!(futures::poll!(left.as_mut()).is_pending());
                tokio::task::yield_now().await;
            }
        }
        database.begin().await.unwrap().commit().await.unwrap();
        database.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_database_that_a_newer_program_used_is_refused_until_it_is_restored() {
    on_both_at(|url, database| async move {
        let version = |version: &str| {
            data::testing::sql(
                "UPDATE platform_setting SET value = ? WHERE name = 'schema version'",
            )
            .with(version)
        };
        let options = Options::default();
        for newer in ["4000000", "none of this program's"] {
            assert_eq!(database.execute(&version(newer)).await.unwrap(), 1);
            let Err(error) = Database::open(&url, &options).await else {
                panic!("{newer} is refused");
            };
            let why = error.to_string();
            assert!(
                why.contains("newer version") && why.contains(newer),
                "{why}"
            );
            assert!(why.contains("restore the backup"), "{why}");
        }
        // An older database is updated, and its version is raised.
        assert_eq!(database.execute(&version("0")).await.unwrap(), 1);
        Database::open(&url, &options).await.unwrap().close().await;
        let select =
            data::testing::sql("SELECT value FROM platform_setting WHERE name = 'schema version'");
        let texts = database.texts(&select).await.unwrap();
        assert_ne!(texts, [Some("0".to_owned())]);
    })
    .await;
}

/// Guests who occupy all of their connections block nobody else.
#[tokio::test]
async fn requests_of_guests_delay_nobody_else() {
    on_both_at(|url, _| async move {
        let mut options = Options::default();
        options.guests.statement_timeout = std::time::Duration::from_secs(2);
        let database = Database::open(&url, &options).await.unwrap();
        let endless = "WITH RECURSIVE n(x) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT x + 1 FROM n) \
                       SELECT count(*) FROM n";
        let guests: Vec<_> = (0..options.guests.connections)
            .map(|_| {
                let guests = database.by(data::Pool::Guests);
                tokio::spawn(async move { guests.rows(&text(endless)).await })
            })
            .collect();
        for pool in [data::Pool::People, data::Pool::Devices] {
            for _ in 0..4 {
                let fine = database.by(pool).texts(&text("SELECT 'fine'")).await;
                assert_eq!(fine.unwrap(), [Some("fine".to_owned())]);
            }
        }
        for guest in &guests {
            assert!(!guest.is_finished(), "they are at it");
        }
        for guest in guests {
            let error = guest.await.unwrap().unwrap_err();
            assert!(matches!(error, DataError::TooSlow(_)), "{error:?}");
        }
        database.close().await;
    })
    .await;
}
