use sqlx::ConnectOptions as _;
use std::collections::BTreeSet;

use futures::future::join_all;
use sqlx::{AssertSqlSafe, Row as _};
use tempfile::TempDir;
use tokio::task::{JoinError, JoinHandle};

use super::*;

const LONG: Duration = Duration::from_secs(30);

async fn writer(folder: &TempDir, timeout: Duration) -> Writer {
    let options = SqliteConnectOptions::new()
        .filename(folder.path().join("test.sqlite"))
        .create_if_missing(true)
        .journal_mode(sqlx::sqlite::SqliteJournalMode::Wal);
    let writer = Writer::open(options, LONG, timeout).await.unwrap();
    let mut turn = writer.turn().await.unwrap();
    run(&mut turn, "CREATE TABLE row (id INTEGER PRIMARY KEY)")
        .await
        .unwrap();
    turn.commit().await.unwrap();
    writer
}

async fn run(turn: &mut Turn, statement: &str) -> Result<(), DataError> {
    let connection = turn.connection()?;
    let statement = sqlx::query(AssertSqlSafe(statement.to_owned()));
    statement.execute(connection).await?;
    Ok(())
}

async fn insert(turn: &mut Turn, id: i64) -> Result<(), DataError> {
    run(turn, &format!("INSERT INTO row (id) VALUES ({id})")).await
}

/// What is in the file, as another program sees it.
async fn rows(folder: &TempDir) -> BTreeSet<i64> {
    let options = SqliteConnectOptions::new().filename(folder.path().join("test.sqlite"));
    let mut connection = options.connect().await.unwrap();
    let rows = sqlx::query("SELECT id FROM row");
    let rows = rows.fetch_all(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// What tasks end with, which they do in time.
async fn ended<T>(tasks: Vec<JoinHandle<T>>) -> Vec<Result<T, JoinError>> {
    tokio::time::timeout(LONG, join_all(tasks)).await.unwrap()
}

/// Has this many tasks wait for their turns, in this order, while `turn` has its own.
async fn in_line<T>(
    writer: &Writer,
    count: usize,
    task: impl Fn(Writer, usize) -> T,
) -> Vec<JoinHandle<T::Output>>
where
    T: Future<Output: Send> + Send + 'static,
{
    let mut tasks = Vec::new();
    for number in 0..count {
        tasks.push(tokio::spawn(task(writer.clone(), number)));
        while writer.shared.waiting.load(Ordering::Relaxed) <= number {
            tokio::task::yield_now().await;
        }
    }
    tasks
}

#[tokio::test]
async fn those_who_wait_are_committed_together_and_seen_by_nobody_before() {
    let folder = TempDir::new().unwrap();
    let writer = writer(&folder, LONG).await;
    let before = writer.shared.state.lock().await.commits;
    let mut first = writer.turn().await.unwrap();
    insert(&mut first, 100).await.unwrap();
    let tasks = in_line(&writer, 5, |writer, number| async move {
        let mut turn = writer.turn().await?;
        insert(&mut turn, number as i64).await?;
        turn.commit().await
    })
    .await;
    assert!(rows(&folder).await.is_empty());
    first.commit().await.unwrap();
    assert_eq!(rows(&folder).await, [0, 1, 2, 3, 4, 100].into());
    for done in ended(tasks).await {
        done.unwrap().unwrap();
    }
    assert_eq!(writer.shared.state.lock().await.commits, before + 1);
}

#[tokio::test]
async fn what_fails_or_is_dropped_in_a_group_is_undone_alone() {
    let folder = TempDir::new().unwrap();
    let writer = writer(&folder, LONG).await;
    let mut first = writer.turn().await.unwrap();
    insert(&mut first, 100).await.unwrap();
    let tasks = in_line(&writer, 6, |writer, number| async move {
        let mut turn = writer.turn().await?;
        insert(&mut turn, number as i64).await?;
        match number {
            1 => insert(&mut turn, 100).await?,
            2 => {
                turn.rollback().await;
                return Ok(());
            }
            4 => return Ok(()),
            _ => {}
        }
        turn.commit().await
    })
    .await;
    first.commit().await.unwrap();
    let results: Vec<_> = ended(tasks).await;
    assert!(
        matches!(results[1], Ok(Err(DataError::Unique { .. }))),
        "{results:?}"
    );
    assert_eq!(rows(&folder).await, [0, 3, 5, 100].into());
}

#[tokio::test]
async fn a_statement_that_takes_too_long_takes_its_group_along_which_may_try_again() {
    let folder = TempDir::new().unwrap();
    let writer = writer(&folder, Duration::from_millis(300)).await;
    let mut first = writer.turn().await.unwrap();
    insert(&mut first, 100).await.unwrap();
    let tasks = in_line(&writer, 2, |writer, number| async move {
        let mut turn = writer.turn().await?;
        let endless = "INSERT INTO row (id) WITH RECURSIVE n (i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n) \
                       SELECT i FROM n";
        match number {
            0 => run(&mut turn, endless).await?,
            _ => insert(&mut turn, 7).await?,
        }
        turn.commit().await
    })
    .await;
    let told = first.commit().await;
    let results: Vec<_> = ended(tasks).await;
    assert!(
        matches!(results[0], Ok(Err(DataError::TooSlow(_)))),
        "{results:?}"
    );
    assert!(matches!(results[1], Ok(Ok(()))), "{results:?}");
    match told {
        Err(error) => assert!(error.may_be_tried_again(), "{error:?}"),
        Ok(()) => panic!("it was undone"),
    }
    assert_eq!(rows(&folder).await, [7].into());
}

#[tokio::test]
async fn a_lone_transaction_that_is_dropped_lets_others_go_on_and_leaves_nothing_open() {
    let folder = TempDir::new().unwrap();
    let writer = writer(&folder, LONG).await;
    let mut turn = writer.turn().await.unwrap();
    insert(&mut turn, 1).await.unwrap();
    drop(turn);
    // Another program can write once it is settled, with nobody asking for a turn here.
    while writer.shared.state.lock().await.unfinished {
        tokio::task::yield_now().await;
    }
    let options = SqliteConnectOptions::new().filename(folder.path().join("test.sqlite"));
    let mut other = options.connect().await.unwrap();
    let written = sqlx::query("INSERT INTO row (id) VALUES (2)")
        .execute(&mut other)
        .await;
    assert!(written.is_ok(), "{written:?}");
    other.close().await.unwrap();
    let mut turn = writer.turn().await.unwrap();
    insert(&mut turn, 3).await.unwrap();
    turn.commit().await.unwrap();
    assert_eq!(rows(&folder).await, [2, 3].into());
}

#[tokio::test]
async fn a_closed_one_refuses_and_has_kept_everything() {
    let folder = TempDir::new().unwrap();
    let writer = writer(&folder, LONG).await;
    let mut first = writer.turn().await.unwrap();
    insert(&mut first, 1).await.unwrap();
    let closing = tokio::spawn({
        let writer = writer.clone();
        async move { writer.close().await }
    });
    first.commit().await.unwrap();
    closing.await.unwrap();
    assert!(matches!(writer.turn().await, Err(DataError::Lost(_))));
    assert_eq!(rows(&folder).await, [1].into());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whatever_is_dropped_at_any_moment_what_was_acknowledged_is_there_and_no_more_than_was_begun()
 {
    let folder = TempDir::new().unwrap();
    let writer = writer(&folder, LONG).await;
    let acknowledged = Arc::new(std::sync::Mutex::new(BTreeSet::new()));
    let refused = Arc::new(std::sync::Mutex::new(BTreeSet::new()));
    let mut tasks = Vec::new();
    for id in 0..600_i64 {
        let (writer, acknowledged, refused) =
            (writer.clone(), acknowledged.clone(), refused.clone());
        let task = tokio::spawn(async move {
            let mut turn = writer.turn().await.unwrap();
            insert(&mut turn, id).await.unwrap();
            if id % 7 == 0 {
                // The same once more: the statement fails, the transaction is dropped.
                assert!(insert(&mut turn, id).await.is_err());
                refused.lock().unwrap().insert(id);
                return;
            }
            // As `Transaction::commit` does.
            if tokio::spawn(turn.commit()).await.unwrap().is_ok() {
                acknowledged.lock().unwrap().insert(id);
            }
        });
        tasks.push((id, task));
    }
    for (id, task) in &tasks {
        if id % 5 == 0 {
            for _ in 0..id % 64 {
                tokio::task::yield_now().await;
            }
            task.abort();
        }
    }
    for (id, task) in tasks {
        let ended = task.await;
        assert!(ended.is_ok() || id % 5 == 0, "{id}: {ended:?}");
    }
    writer.close().await;
    let rows = rows(&folder).await;
    let acknowledged = acknowledged.lock().unwrap();
    assert!(acknowledged.is_subset(&rows));
    assert!(refused.lock().unwrap().is_disjoint(&rows));
    for id in (0..600).filter(|id| id % 5 != 0 && id % 7 != 0) {
        assert!(acknowledged.contains(&id), "{id}");
    }
}
