//! A connection that is lost during a commit.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use data::testing::on_fresh_postgres;
use data::testing::sql;
use data::{DataError, Database, Effect, Options};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A way to a server that passes on the word `COMMIT` and nothing from then on, once it is told to.
async fn way_to(server: String, cuts: Arc<Mutex<bool>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("its address").to_string();
    tokio::spawn(async move {
        while let Ok((here, _)) = listener.accept().await {
            let there = TcpStream::connect(&server).await.expect("the server");
            let (mut from_here, mut to_here) = here.into_split();
            let (mut from_there, mut to_there) = there.into_split();
            let back = tokio::spawn(async move {
                let _ = tokio::io::copy(&mut from_there, &mut to_here).await;
            });
            let cuts = cuts.clone();
            tokio::spawn(async move {
                let mut buffer = [0; 64 << 10];
                while let Ok(length @ 1..) = from_here.read(&mut buffer).await {
                    let some = &buffer[..length];
                    let commits = some.windows(6).any(|word| word == b"COMMIT");
                    if commits && *cuts.lock().expect("a flag") {
                        back.abort();
                        let _ = back.await;
                        let _ = to_there.write_all(some).await;
                        // The server reads it before it sees that nobody is there.
                        let _ = to_there.shutdown().await;
                        return;
                    }
                    if to_there.write_all(some).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

#[tokio::test]
async fn m15_a_commit_whose_connection_was_lost_is_told() {
    on_fresh_postgres(async |url| {
        let (user, rest) = url.split_once('@').unwrap();
        let (server, name) = rest.split_once('/').unwrap();
        let cuts = Arc::new(Mutex::new(false));
        let way = way_to(server.to_owned(), cuts.clone()).await;
        let options = Options::default().with_connections(2);
        let by_way = format!("{user}@{way}/{name}");
        let database = Database::open(&by_way, &options).await.unwrap();
        let told = Arc::new(Mutex::new(0));
        let counting = told.clone();
        database.listen(move |effects| {
            assert_eq!(effects, [Effect::ActorsChanged(vec![7])]);
            *counting.lock().unwrap() += 1;
        });
        let mut transaction = database.begin().await.unwrap();
        let insert = sql("INSERT INTO platform_setting (name, value) VALUES ('a', 'b')");
        transaction.execute(&insert).await.unwrap();
        transaction.effect(Effect::ActorsChanged(vec![7]));
        *cuts.lock().unwrap() = true;
        let error = transaction.commit().await.unwrap_err();
        assert!(matches!(error, DataError::Lost(_)), "{error:?}");
        assert_eq!(*told.lock().unwrap(), 1, "at once");
        let again = async {
            while *told.lock().unwrap() < 2 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let again = tokio::time::timeout(Duration::from_secs(30), again).await;
        again.expect("told again, when the server must have done it or not");
    })
    .await;
}
