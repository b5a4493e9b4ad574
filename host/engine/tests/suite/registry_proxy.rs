//! A proxy in front of the registry, which behaves as a test needs it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine as _;
use engine::RegistryAuth;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// The first byte of a TLS connection.
const TLS_HANDSHAKE: u8 = 0x16;

/// Bytes; configurations are shorter.
const SMALLEST_LAYER: usize = 64 << 10;

/// The time between two bytes of a trickle.
const TRICKLE: std::time::Duration = std::time::Duration::from_millis(20);

/// What the proxy does in addition to forwarding requests.
#[derive(Clone)]
pub enum Manner {
    Plain,
    /// Requires these credentials.
    Asks(RegistryAuth),
    /// Sends the first half of a layer, and nothing more, until it
    /// [recovers](RegistryProxy::recover). An image's configuration is forwarded: Docker 20.10
    /// keeps waiting for one whose client left.
    StallsInBlobs,
    /// Then continues one byte at a time: only when the next byte of a layer arrives does Docker 20.10 notice that the
    /// layer is no longer needed.
    TricklesInBlobs,
}

/// A running proxy. Dropping it closes it and all its connections.
pub struct RegistryProxy {
    address: String,
    stalled: Arc<Notify>,
    abandoned: Arc<Notify>,
    recovered: Arc<AtomicBool>,
    _tasks: JoinSet<()>,
}

impl RegistryProxy {
    pub async fn start(registry: &str, manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = RegistryProxy {
            address: listener.local_addr().unwrap().to_string(),
            stalled: Arc::default(),
            abandoned: Arc::default(),
            recovered: Arc::default(),
            _tasks: JoinSet::new(),
        };
        let (stalled, abandoned) = (proxy.stalled.clone(), proxy.abandoned.clone());
        let recovered = proxy.recovered.clone();
        let registry = registry.to_owned();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let registry = registry.clone();
                let manner = if recovered.load(Ordering::SeqCst) {
                    Manner::Plain
                } else {
                    manner.clone()
                };
                let (stalled, abandoned) = (stalled.clone(), abandoned.clone());
                connections.spawn(async move {
                    // A client that disconnects is not an error.
                    let _ = serve(client, &registry, &manner, &stalled, &abandoned).await;
                });
            }
        });
        RegistryProxy {
            _tasks: tasks,
            ..proxy
        }
    }

    /// `127.0.0.1:PORT`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// From now on requests are forwarded unchanged; what has stalled stays stalled.
    pub fn recover(&self) {
        self.recovered.store(true, Ordering::SeqCst);
    }

    /// Waits until a blob is half sent.
    pub async fn stalled(&self) {
        self.stalled.notified().await;
    }

    /// Waits until a client has disconnected from a blob that is half sent.
    pub async fn abandoned(&self) {
        self.abandoned.notified().await;
    }
}

/// Serves one request.
async fn serve(
    mut client: TcpStream,
    registry: &str,
    manner: &Manner,
    stalled: &Notify,
    abandoned: &Notify,
) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await?);
        if head[0] == TLS_HANDSHAKE {
            // Engines try TLS first; refused at once, they do not have to wait for a timeout.
            return Ok(());
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    if let Manner::Asks(auth) = manner {
        let pair = format!("{}:{}", auth.user, auth.password);
        let expected = base64::engine::general_purpose::STANDARD.encode(pair);
        if !head.contains(&format!("Basic {expected}")) {
            let refusal = "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"test\"\r\n\
                Docker-Distribution-Api-Version: registry/2.0\r\n\
                Connection: close\r\nContent-Length: 0\r\n\r\n";
            return client.write_all(refusal.as_bytes()).await;
        }
    }
    let mut upstream = TcpStream::connect(registry).await?;
    let request = head.replacen("\r\n", "\r\nConnection: close\r\n", 1);
    upstream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    upstream.read_to_end(&mut answer).await?;
    let is_layer = head.contains("/blobs/") && answer.len() > SMALLEST_LAYER;
    let stalls = matches!(manner, Manner::StallsInBlobs | Manner::TricklesInBlobs) && is_layer;
    if !stalls {
        return client.write_all(&answer).await;
    }
    let (sent, mut rest) = answer.split_at(answer.len() - answer.len() / 2);
    client.write_all(sent).await?;
    stalled.notify_one();
    let mut trickle = tokio::time::interval(TRICKLE);
    let gone = loop {
        tokio::select! {
            // The client sends nothing more; the wait ends when it disconnects.
            gone = client.read_u8() => break gone.map(|_| ()),
            _ = trickle.tick(), if matches!(manner, Manner::TricklesInBlobs) => {
                let Some((next, left)) = rest.split_first() else {
                    break Ok(());
                };
                rest = left;
                if let Err(gone) = client.write_all(&[*next]).await {
                    break Err(gone);
                }
            }
        }
    };
    abandoned.notify_one();
    gone
}
