//! A connection path to the tests' PostgreSQL server, on which a test can cause faults.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// The state of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Traffic {
    /// Everything passes.
    Flows,
    /// The word `COMMIT` reaches the server, and nothing more passes in either direction.
    EndsAtCommit,
    /// Connections stay open but nothing passes: a frozen server, a network that swallows packets.
    Stalls,
}

/// A local address that forwards to a server.
pub(crate) struct Way {
    address: String,
    traffic: Arc<watch::Sender<Traffic>>,
}

impl Way {
    /// Opens a path to the server with this address (`postgres://USER@HOST:PORT/NAME`).
    pub(crate) async fn to(url: &str) -> Way {
        let (user, rest) = url.split_once('@').expect("an address with a user");
        let (server, name) = rest.split_once('/').expect("an address with a database");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let here = listener.local_addr().expect("its address");
        let traffic = Arc::new(watch::Sender::new(Traffic::Flows));
        let (server, on_the_way) = (server.to_owned(), traffic.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&server).await.expect("the server");
                pass(client, server, &on_the_way);
            }
        });
        Way {
            address: format!("{user}@{here}/{name}"),
            traffic,
        }
    }

    /// Returns the database's address through this path.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn set(&self, traffic: Traffic) {
        self.traffic.send_replace(traffic);
    }
}

async fn until_it_flows(traffic: &mut watch::Receiver<Traffic>) {
    // When the test ends, everything is released.
    let _ = traffic
        .wait_for(|traffic| *traffic != Traffic::Stalls)
        .await;
}

fn pass(client: TcpStream, server: TcpStream, traffic: &watch::Sender<Traffic>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let mut back_traffic = traffic.subscribe();
    let back = tokio::spawn(async move {
        let mut buffer = [0; 64 << 10];
        while let Ok(length @ 1..) = from_server.read(&mut buffer).await {
            until_it_flows(&mut back_traffic).await;
            if to_client.write_all(&buffer[..length]).await.is_err() {
                return;
            }
        }
    });
    let mut traffic = traffic.subscribe();
    tokio::spawn(async move {
        let mut buffer = [0; 64 << 10];
        while let Ok(length @ 1..) = from_client.read(&mut buffer).await {
            let some = &buffer[..length];
            until_it_flows(&mut traffic).await;
            let commits = some.windows(6).any(|word| word == b"COMMIT");
            if commits && *traffic.borrow() == Traffic::EndsAtCommit {
                back.abort();
                let _ = back.await;
                let _ = to_server.write_all(some).await;
                // The server reads it before it notices that the client is gone.
                let _ = to_server.shutdown().await;
                return;
            }
            if to_server.write_all(some).await.is_err() {
                return;
            }
        }
    });
}

/// How long a test waits for anything.
pub(crate) const DEADLINE: Duration = Duration::from_secs(240);
