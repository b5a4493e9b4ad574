//! A way to the PostgreSQL server of the tests on which a test lets things happen.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What happens on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Traffic {
    /// All of it gets there.
    Flows,
    /// The word `COMMIT` gets to the server, and nothing more in either direction.
    EndsAtCommit,
    /// Connections stand, and nobody hears of the other end: a frozen server, a network that swallows packets.
    Stalls,
}

/// A place of the test's own that leads to a server.
pub(crate) struct Way {
    address: String,
    traffic: Arc<watch::Sender<Traffic>>,
}

impl Way {
    /// To the server of this address (`postgres://USER@HOST:PORT/NAME`).
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

    /// The address by this way.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn set(&self, traffic: Traffic) {
        self.traffic.send_replace(traffic);
    }
}

async fn until_it_flows(traffic: &mut watch::Receiver<Traffic>) {
    // The test that ends lets go of everything.
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
                // The server reads it before it sees that nobody is there.
                let _ = to_server.shutdown().await;
                return;
            }
            if to_server.write_all(some).await.is_err() {
                return;
            }
        }
    });
}

/// For what a test waits for.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);
