use sqlx::ConnectOptions as _;
use std::collections::BTreeSet;

use futures::future::join_all;
use sqlx::sqlite::SqliteAutoVacuum;
use sqlx::{AssertSqlSafe, Row as _};
use tempfile::TempDir;
use tokio::task::{JoinError, JoinHandle};

use super::*;

const LONG: Duration = Duration::from_secs(30);

async fn writer(folder: &TempDir, timeout: Duration) -> SqliteWriter {
    let options = SqliteConnectOptions::new()
        .filename(folder.path().join("test.sqlite"))
        .create_if_missing(true)
        .journal_mode(sqlx::sqlite::SqliteJournalMode::Wal);
    let writer = SqliteWriter::open(options, LONG, timeout).await.unwrap();
    let mut turn = writer.turn().await.unwrap();
    run(&mut turn, "CREATE TABLE row (id INTEGER PRIMARY KEY)")
        .await
        .unwrap();
    turn.commit().await.unwrap();
    writer
}

async fn run(turn: &mut WriterTurn, statement: &str) -> Result<(), DataError> {
    let connection = turn.connection()?;
    let statement = sqlx::query(AssertSqlSafe(statement.to_owned()));
    statement.execute(connection).await?;
    Ok(())
}

async fn insert(turn: &mut WriterTurn, id: i64) -> Result<(), DataError> {
    run(turn, &format!("INSERT INTO row (id) VALUES ({id})")).await
}

/// Returns the rows in the file, as another program sees them.
async fn rows(folder: &TempDir) -> BTreeSet<i64> {
    let options = SqliteConnectOptions::new().filename(folder.path().join("test.sqlite"));
    let mut connection = options.connect().await.unwrap();
    let rows = sqlx::query("SELECT id FROM row");
    let rows = rows.fetch_all(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// Returns the results of tasks, which must end in time.
async fn ended<T>(tasks: Vec<JoinHandle<T>>) -> Vec<Result<T, JoinError>> {
    tokio::time::timeout(LONG, join_all(tasks)).await.unwrap()
}

/// Lets this many tasks wait for their turns, in this order, while `turn` is in progress.
async fn in_line<T>(
    writer: &SqliteWriter,
    count: usize,
    task: impl Fn(SqliteWriter, usize) -> T,
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
async fn a_failed_or_dropped_write_of_a_group_is_undone_alone() {
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
    let result = first.commit().await;
    let results: Vec<_> = ended(tasks).await;
    assert!(
        matches!(results[0], Ok(Err(DataError::TooSlow(_)))),
        "{results:?}"
    );
    assert!(matches!(results[1], Ok(Ok(()))), "{results:?}");
    match result {
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
    // Another program can write once it is settled, even if nobody requests a turn here.
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
                // The same again: the statement fails, the transaction is dropped.
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

/// Creates a file with mostly free pages, and returns its current size.
async fn mostly_free(
    folder: &TempDir,
    vacuum: SqliteAutoVacuum,
) -> (SqliteWriter, impl Fn() -> u64) {
    let path = folder.path().join("test.sqlite");
    let options = SqliteConnectOptions::new()
        .filename(&path)
        .create_if_missing(true)
        .auto_vacuum(vacuum)
        .journal_mode(sqlx::sqlite::SqliteJournalMode::Wal);
    let writer = SqliteWriter::open(options, LONG, LONG).await.unwrap();
    for statement in [
        "CREATE TABLE row (id INTEGER PRIMARY KEY, bytes BLOB)",
        "INSERT INTO row (id, bytes) VALUES (1, zeroblob(16000000))",
        "DELETE FROM row",
    ] {
        let mut turn = writer.turn().await.unwrap();
        run(&mut turn, statement).await.unwrap();
        turn.commit().await.unwrap();
    }
    let size = move || std::fs::metadata(&path).unwrap().len();
    (writer, size)
}

/// Releases all free pages that do not stay in the file.
async fn shrunk(writer: &SqliteWriter) -> usize {
    let mut steps = 0;
    while writer.shrink().await.unwrap() {
        steps += 1;
        assert!(steps < 100, "it does not end");
    }
    steps
}

#[tokio::test]
async fn a_file_that_a_reader_kept_from_being_cut_is_cut_once_the_reader_is_gone() {
    let folder = TempDir::new().unwrap();
    let (writer, size) = mostly_free(&folder, SqliteAutoVacuum::Incremental).await;
    let options = SqliteConnectOptions::new().filename(folder.path().join("test.sqlite"));
    let mut reader = options.connect().await.unwrap();
    sqlx::query("BEGIN").execute(&mut reader).await.unwrap();
    sqlx::query("SELECT id FROM row")
        .fetch_all(&mut reader)
        .await
        .unwrap();
    assert!(shrunk(&writer).await > 10);
    let held_up = size();
    assert!(held_up > 16_000_000, "{held_up}");
    sqlx::query("COMMIT").execute(&mut reader).await.unwrap();
    // There are no further writes.
    assert_eq!(shrunk(&writer).await, 0);
    assert!(size() < 5_000_000, "{}", size());
    assert!(!writer.shared.is_to_be_cut.load(Ordering::Relaxed));
    reader.close().await.unwrap();
}

#[tokio::test]
async fn a_file_that_gives_nothing_back_is_left_alone() {
    let folder = TempDir::new().unwrap();
    let (writer, _) = mostly_free(&folder, SqliteAutoVacuum::None).await;
    // Not even its turn was requested: this one is not undone.
    let mut turn = writer.turn().await.unwrap();
    insert(&mut turn, 7).await.unwrap();
    assert_eq!(shrunk(&writer).await, 0);
    turn.commit().await.unwrap();
    let commits = writer.shared.state.lock().await.commits;
    assert_eq!(shrunk(&writer).await, 0);
    assert_eq!(writer.shared.state.lock().await.commits, commits);
    assert_eq!(rows(&folder).await, [7].into());
}
