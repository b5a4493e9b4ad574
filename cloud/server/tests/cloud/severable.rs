//! A proxy between the cloud and a server that it needs, which a test can cut.

use held_port::HeldPort;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A TCP proxy in front of a server. When cut, it refuses connections and ends existing ones.
pub(crate) struct SeverableProxy {
    port: HeldPort,
    to: String,
    open: Option<JoinHandle<()>>,
}

impl SeverableProxy {
    /// Creates one in front of the server of a PostgreSQL database; returns it with the address of the database through
    /// it.
    pub(crate) async fn to_database(database: &str) -> (Self, String) {
        let (_, rest) = database.split_once('@').expect("a user");
        let (server, _) = rest.split_once('/').expect("a name");
        let proxy = SeverableProxy::to(server).await;
        let by_proxy = database.replace(server, &proxy.port.address().to_string());
        (proxy, by_proxy)
    }

    async fn to(server: &str) -> Self {
        let mut proxy = SeverableProxy {
            port: HeldPort::new().expect("a port"),
            to: server.to_owned(),
            open: None,
        };
        proxy.open().await;
        proxy
    }

    pub(crate) async fn open(&mut self) {
        let listener = TcpListener::bind(self.port.address())
            .await
            .expect("the port");
        let to = self.to.clone();
        self.open = Some(tokio::spawn(async move {
            // Dropped with the task, which cuts the connections.
            let mut passing = tokio::task::JoinSet::new();
            while let Ok((mut here, _)) = listener.accept().await {
                let to = to.clone();
                passing.spawn(async move {
                    if let Ok(mut there) = TcpStream::connect(to).await {
                        let _ = tokio::io::copy_bidirectional(&mut here, &mut there).await;
                    }
                });
            }
        }));
    }

    pub(crate) async fn cut(&mut self) {
        if let Some(open) = self.open.take() {
            open.abort();
            let _ = open.await;
        }
    }
}
