//! SQLite on a full disk.

use data::testing::{SmallDisk, sql};
use data::{DataError, Database, Options};

#[tokio::test]
async fn chaos_a_full_disk_refuses_writes_loses_nothing_and_is_used_again_when_there_is_room() {
    let Some(disk) = SmallDisk::new(6) else {
        return;
    };
    let url = format!("sqlite:{}", disk.path().join("cloud.sqlite").display());
    let options = Options::default().with_connections(2);
    let database = Database::open(&url, &options).await.unwrap();
    let filler = disk.path().join("filler");
    std::fs::write(&filler, vec![0; 1 << 20]).unwrap();
    let write = |number: usize| {
        sql("INSERT INTO platform_setting (name, value) VALUES (?, ?)")
            .with(format!("number {number}"))
            .with("x".repeat(50_000))
    };
    let mut written = 0;
    let refused = loop {
        match database.execute(&write(written)).await {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 1000, "it is never full");
    };
    assert!(matches!(refused, DataError::Full(_)), "{refused:?}");
    // A transaction gets the same error, and everything that was confirmed can be read.
    let mut transaction = database.begin().await.unwrap();
    let result = match transaction.execute(&write(written)).await {
        Ok(_) => transaction.commit().await,
        Err(error) => Err(error),
    };
    assert!(matches!(result, Err(DataError::Full(_))), "{result:?}");
    let count = sql("SELECT count(*) FROM platform_setting WHERE name LIKE 'number %'");
    let there = async || {
        let row = database.row(&count).await.unwrap().unwrap();
        usize::try_from(row.id(0).unwrap()).unwrap()
    };
    assert_eq!(there().await, written);
    // No restart is needed.
    std::fs::remove_file(&filler).unwrap();
    database.execute(&write(written)).await.unwrap();
    assert_eq!(there().await, written + 1);
    database.close().await;
}
