//! Load over keep-alive connections, from a client that does as little as possible, so that mainly
//! the server is measured.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::figures::Latencies;

/// The result of one load.
pub(crate) struct Load {
    pub(crate) latencies: Latencies,
    pub(crate) per_second: f64,
}

/// Sends `GET path` over `connections` at the same time, each with one request under way, for
/// `time`.
pub(crate) async fn load(
    address: SocketAddr,
    path: &str,
    connections: usize,
    time: Duration,
) -> Result<Load> {
    paced_load(address, path, connections, time, Duration::ZERO).await
}

/// As [`load`], with a `pause` after each answer.
pub(crate) async fn paced_load(
    address: SocketAddr,
    path: &str,
    connections: usize,
    time: Duration,
    pause: Duration,
) -> Result<Load> {
    // Connections and caches are warm before anything counts.
    hammer(address, path, connections, time / 10, pause).await?;
    let begin = Instant::now();
    let samples = hammer(address, path, connections, time, pause).await?;
    let seconds = begin.elapsed().as_secs_f64();
    let latencies = Latencies::new(samples);
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    let per_second = latencies.count() as f64 / seconds;
    Ok(Load {
        latencies,
        per_second,
    })
}

async fn hammer(
    address: SocketAddr,
    path: &str,
    connections: usize,
    time: Duration,
    pause: Duration,
) -> Result<Vec<Duration>> {
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    let end = Instant::now() + time;
    let clients =
        (0..connections).map(|_| tokio::spawn(client(address, request.clone(), end, pause)));
    let mut samples = Vec::new();
    for client in clients.collect::<Vec<_>>() {
        samples.extend(client.await??);
    }
    Ok(samples)
}

async fn client(
    address: SocketAddr,
    request: String,
    end: Instant,
    pause: Duration,
) -> Result<Vec<Duration>> {
    let mut connection = TcpStream::connect(address).await?;
    connection.set_nodelay(true)?;
    let mut samples = Vec::new();
    let mut buffer = Vec::with_capacity(16 << 10);
    while Instant::now() < end {
        let begin = Instant::now();
        connection.write_all(request.as_bytes()).await?;
        read_answer(&mut connection, &mut buffer).await?;
        samples.push(begin.elapsed());
        rest(pause).await;
    }
    Ok(samples)
}

/// Yields to other tasks for a while without sleeping: the wake-up time of a processor would be
/// measured with the next request.
pub(crate) async fn rest(pause: Duration) {
    if pause.is_zero() {
        return;
    }
    let rested = Instant::now() + pause;
    while Instant::now() < rested {
        tokio::task::yield_now().await;
    }
}

/// Reads one answer of a known length; any status but 200 is a failure of the benchmark.
async fn read_answer(connection: &mut TcpStream, buffer: &mut Vec<u8>) -> Result<()> {
    buffer.clear();
    let head = loop {
        if connection.read_buf(buffer).await? == 0 {
            bail!("the server closed the connection");
        }
        if let Some(end) = find(buffer, b"\r\n\r\n") {
            break end + 4;
        }
    };
    let text = String::from_utf8_lossy(&buffer[..head]).to_lowercase();
    if !text.starts_with("http/1.1 200") {
        bail!(
            "the server answered `{}`",
            text.lines().next().unwrap_or_default()
        );
    }
    let length: usize = text
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"))
        .context("the answer has no length")?
        .trim()
        .parse()?;
    while buffer.len() < head + length {
        if connection.read_buf(buffer).await? == 0 {
            bail!("the answer ended early");
        }
    }
    Ok(())
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack
        .windows(needle.len())
        .position(|window| window == needle)
}
