//! The one long request, and its lines that may not have arrived.

use std::collections::VecDeque;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::StreamExt;
use futures::future::BoxFuture;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::Instant;
use tokio_stream::wrappers::UnboundedReceiverStream;

use super::LogSink;
use crate::client::CloudError;

/// The maximum size of packed lines that wait for a slow connection, in bytes.
const ROOM: usize = 256 << 10;
/// How long lines are kept after they were sent, and how much of them, in bytes.
const KEPT_FOR: Duration = Duration::from_secs(30);
const KEPT: usize = 256 << 10;

/// The request. Dropping it ends it properly.
pub(super) struct LiveUpload {
    encoder: GzEncoder<Vec<u8>>,
    chunks: UnboundedSender<Bytes>,
    /// Bytes in `chunks`.
    queued: Arc<AtomicUsize>,
    request: Option<BoxFuture<'static, Result<(), CloudError>>>,
    sent: VecDeque<(Instant, Vec<Vec<u8>>)>,
    opened: Instant,
    wrote: Instant,
}

impl LiveUpload {
    pub(super) fn open(sink: &dyn LogSink) -> LiveUpload {
        let (chunks, receiver) = unbounded_channel::<Bytes>();
        let queued = Arc::new(AtomicUsize::new(0));
        let left = Arc::clone(&queued);
        let body = UnboundedReceiverStream::new(receiver).inspect(move |chunk| {
            left.fetch_sub(chunk.len(), Ordering::Relaxed);
        });
        let now = Instant::now();
        LiveUpload {
            encoder: GzEncoder::new(Vec::new(), Compression::default()),
            chunks,
            queued,
            request: Some(sink.stream(body.boxed())),
            sent: VecDeque::new(),
            opened: now,
            wrote: now,
        }
    }

    pub(super) fn opened(&self) -> Instant {
        self.opened
    }

    pub(super) fn wrote(&self) -> Instant {
        self.wrote
    }

    pub(super) fn has_room(&self) -> bool {
        self.queued.load(Ordering::Relaxed) < ROOM
    }

    /// Sends lines, each with its end.
    pub(super) fn write(&mut self, lines: Vec<Vec<u8>>) {
        for line in &lines {
            // Writing into memory does not fail.
            let _ = self.encoder.write_all(line);
        }
        let _ = self.encoder.flush();
        let chunk = std::mem::take(self.encoder.get_mut());
        self.put(chunk);
        self.wrote = Instant::now();
        self.sent.push_back((self.wrote, lines));
        self.let_go();
    }

    fn put(&self, chunk: Vec<u8>) {
        if !chunk.is_empty() {
            self.queued.fetch_add(chunk.len(), Ordering::Relaxed);
            // If the body is no longer read, the request reports it.
            let _ = self.chunks.send(chunk.into());
        }
    }

    /// Discards lines that are old enough to have arrived.
    fn let_go(&mut self) {
        let size = |lines: &Vec<Vec<u8>>| lines.iter().map(Vec::len).sum::<usize>();
        let mut bytes: usize = self.sent.iter().map(|(_, lines)| size(lines)).sum();
        while let Some((at, lines)) = self.sent.front() {
            let is_old = at.elapsed() >= KEPT_FOR && self.queued.load(Ordering::Relaxed) == 0;
            if !is_old && bytes <= KEPT {
                return;
            }
            bytes -= size(lines);
            self.sent.pop_front();
        }
    }

    /// Drives the request; returns when it has ended.
    pub(super) async fn ended(&mut self) -> Result<(), CloudError> {
        match &mut self.request {
            Some(request) => {
                let answer = request.await;
                self.request = None;
                answer
            }
            None => std::future::pending().await,
        }
    }

    /// Returns lines that may not have arrived.
    pub(super) fn kept(mut self) -> Vec<Vec<u8>> {
        self.let_go();
        let sent = std::mem::take(&mut self.sent);
        sent.into_iter().flat_map(|(_, lines)| lines).collect()
    }

    /// Returns lines that may not have been sent, if the connection has not accepted everything in
    /// the queue.
    pub(super) fn not_sent(self) -> Vec<Vec<u8>> {
        match self.queued.load(Ordering::Relaxed) {
            0 => Vec::new(),
            _ => self.kept(),
        }
    }
}

impl Drop for LiveUpload {
    fn drop(&mut self) {
        let _ = self.encoder.try_finish();
        let rest = std::mem::take(self.encoder.get_mut());
        self.put(rest);
        // Dropping the channel ends the body; the answer is awaited in the background.
        if let Some(request) = self.request.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            // Replaced by an unused sender, so the body's last one is dropped here.
            self.chunks = unbounded_channel().0;
            runtime.spawn(tokio::time::timeout(KEPT_FOR, request));
        }
    }
}

/// Packs these lines.
pub(super) fn packed(lines: &[Vec<u8>]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    for line in lines {
        let _ = encoder.write_all(line);
    }
    encoder.finish().unwrap_or_default()
}
