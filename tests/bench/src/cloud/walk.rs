//! Requests of many devices, one after the other, over a few connections: each as the device itself would send it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use simulator::{Cloud, Usage};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::figures::{Latencies, millis};

/// The number of requests under way at a time.
const CONNECTIONS: usize = 16;

/// When a walk ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WalkEnd {
    /// After each request was sent once.
    Once,
    /// After this time, starting again from the first request if necessary.
    After(Duration),
}

/// The result of a walk.
pub(crate) struct WalkResult {
    pub(crate) latencies: Latencies,
    pub(crate) per_second: f64,
    /// CPU time of the cloud for each request.
    pub(crate) cpu: Duration,
    /// The ETag of the last answer to each request.
    pub(crate) tags: Vec<Option<String>>,
}

impl WalkResult {
    /// Returns the result as one line.
    pub(crate) fn summary(&self) -> String {
        format!(
            "{:.0}/s, p50 {}, p99 {}; {:.0} us of the cloud's processor each",
            self.per_second,
            millis(self.latencies.p50()),
            millis(self.latencies.p99()),
            self.cpu.as_secs_f64() * 1e6,
        )
    }
}

/// Sends the requests; the answer to each must have this status.
pub(crate) async fn walk(
    cloud: &Cloud,
    address: SocketAddr,
    requests: Vec<String>,
    expected: u16,
    until: WalkEnd,
) -> Result<WalkResult> {
    let requests = Arc::new(requests);
    let before: Usage = cloud.usage()?;
    let begun = Instant::now();
    let walkers: Vec<_> = (0..CONNECTIONS)
        .map(|first| tokio::spawn(walker(address, requests.clone(), first, expected, until)))
        .collect();
    let mut samples = Vec::new();
    let mut tags = vec![None; requests.len()];
    for walker in walkers {
        let (some, found) = walker.await??;
        samples.extend(some);
        for (at, tag) in found {
            if let Some(place) = tags.get_mut(at) {
                *place = tag;
            }
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    let used = cloud.usage()?.cpu - before.cpu;
    let count = u32::try_from(samples.len())?.max(1);
    Ok(WalkResult {
        latencies: Latencies::new(samples),
        per_second: f64::from(count) / seconds,
        cpu: used / count,
        tags,
    })
}

type PageResults = (Vec<Duration>, Vec<(usize, Option<String>)>);

async fn walker(
    address: SocketAddr,
    requests: Arc<Vec<String>>,
    first: usize,
    expected: u16,
    until: WalkEnd,
) -> Result<PageResults> {
    let mut connection = TcpStream::connect(address).await?;
    connection.set_nodelay(true)?;
    let (mut samples, mut tags) = (Vec::new(), Vec::new());
    let mut buffer = Vec::with_capacity(16 << 10);
    let begun = Instant::now();
    let mut at = first;
    loop {
        match until {
            WalkEnd::Once if at >= requests.len() => break,
            WalkEnd::After(time) if begun.elapsed() >= time => break,
            _ => {}
        }
        let index = at % requests.len().max(1);
        let request = requests.get(index).context("there are no requests")?;
        let sent = Instant::now();
        connection.write_all(request.as_bytes()).await?;
        let tag = answer(&mut connection, &mut buffer, expected).await?;
        samples.push(sent.elapsed());
        if matches!(until, WalkEnd::Once) {
            tags.push((index, tag));
        }
        at += CONNECTIONS;
    }
    Ok((samples, tags))
}

/// Reads an answer to its end; returns its ETag.
async fn answer(
    connection: &mut TcpStream,
    buffer: &mut Vec<u8>,
    expected: u16,
) -> Result<Option<String>> {
    buffer.clear();
    let head = loop {
        if connection.read_buf(buffer).await? == 0 {
            bail!("the cloud closed the connection");
        }
        if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
    };
    let text = String::from_utf8_lossy(buffer.get(..head).unwrap_or_default()).into_owned();
    let field = |name: &str| {
        let mut fields = text.lines().filter_map(|line| line.split_once(": "));
        fields
            .find(|(field, _)| field.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.to_owned())
    };
    let length = match field("content-length") {
        Some(length) => Some(length.parse::<usize>()?),
        None if field("transfer-encoding").is_none() => Some(0),
        None => None,
    };
    loop {
        let whole = match length {
            Some(length) => buffer.len() >= head + length,
            None => buffer.ends_with(b"\r\n0\r\n\r\n"),
        };
        if whole {
            break;
        }
        if connection.read_buf(buffer).await? == 0 {
            bail!("the answer ended early");
        }
    }
    let status = text
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    if status != Some(expected) {
        bail!("{}", String::from_utf8_lossy(buffer));
    }
    Ok(field("etag"))
}
