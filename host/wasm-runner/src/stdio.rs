//! A service's standard streams: an input that stays open until the service should stop, and outputs
//! that go to its log no faster than [`RATE`].

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use wasm_service::log_file::{LogFile, Stream};
use wasmtime_wasi::cli::{IsTerminal, StdinStream, StdoutStream};
use wasmtime_wasi_io::poll::Pollable;
use wasmtime_wasi_io::streams::{InputStream, OutputStream, StreamError};

/// How much a service may print in the long run, in bytes per second.
pub(crate) const RATE: f64 = (128 << 10) as f64;
/// How much it may print at once after it was quiet, in bytes.
const BURST: f64 = (512 << 10) as f64;
/// The cost of a line in addition to its bytes, so that empty lines are not free.
const LINE: f64 = 64.0;
/// A write is allowed once there is room for this many bytes.
const LEAST: f64 = 1024.0;
/// The most bytes in one write.
const MOST: f64 = (64 << 10) as f64;

/// The log of a service, for its streams and for us.
#[derive(Clone)]
pub(crate) struct ServiceLog(Arc<Mutex<LogState>>);

struct LogState {
    file: LogFile,
    /// Bytes that may be printed; below 0 after a write of many short lines.
    room: f64,
    counted: Instant,
}

impl ServiceLog {
    pub(crate) fn new(file: LogFile) -> Self {
        ServiceLog(Arc::new(Mutex::new(LogState {
            file,
            room: BURST,
            counted: Instant::now(),
        })))
    }

    /// Adds a line about the service.
    pub(crate) fn note(&self, message: &str) {
        self.0.lock().file.note(message);
    }

    pub(crate) fn end_lines(&self) {
        self.0.lock().file.end_lines();
    }

    /// Returns how many bytes may be printed now, or how long until some may.
    fn room(&self) -> Result<usize, Duration> {
        let mut shared = self.0.lock();
        let passed = shared.counted.elapsed().as_secs_f64();
        shared.counted = Instant::now();
        shared.room = (shared.room + passed * RATE).min(BURST);
        if shared.room < LEAST {
            return Err(Duration::from_secs_f64((LEAST - shared.room) / RATE));
        }
        Ok(shared.room.min(MOST) as usize)
    }

    fn print(&self, stream: Stream, bytes: &[u8]) {
        let mut shared = self.0.lock();
        let lines = shared.file.print(stream, bytes);
        let cost = bytes.len() as f64 + lines as f64 * LINE;
        shared.room -= cost;
    }
}

/// Standard output or standard error.
#[derive(Clone)]
pub(crate) struct Output {
    pub(crate) log: ServiceLog,
    pub(crate) stream: Stream,
}

impl IsTerminal for Output {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Output {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(UnlimitedOutput(self.clone()))
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

impl OutputStream for Output {
    fn write(&mut self, bytes: Bytes) -> Result<(), StreamError> {
        self.log.print(self.stream, &bytes);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), StreamError> {
        Ok(())
    }

    fn check_write(&mut self) -> Result<usize, StreamError> {
        Ok(self.log.room().unwrap_or(0))
    }
}

#[async_trait::async_trait]
impl Pollable for Output {
    async fn ready(&mut self) {
        while let Err(wait) = self.log.room() {
            tokio::time::sleep(wait).await;
        }
    }
}

/// The form that the trait requires; interfaces of WASI 0.2 use the other one.
struct UnlimitedOutput(Output);

impl AsyncWrite for UnlimitedOutput {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.log.print(self.0.stream, bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Standard input: it is empty, and ends when the service should stop.
#[derive(Clone)]
pub(crate) struct Input(pub(crate) watch::Receiver<bool>);

impl Input {
    /// Waits until the service should stop.
    pub(crate) async fn closed(&mut self) {
        // The sender lives as long as the process; an error would mean the same.
        let _ = self.0.wait_for(|stopping| *stopping).await;
    }
}

impl IsTerminal for Input {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdinStream for Input {
    fn async_stream(&self) -> Box<dyn AsyncRead + Send + Sync> {
        Box::new(EndedInput)
    }

    fn p2_stream(&self) -> Box<dyn InputStream> {
        Box::new(self.clone())
    }
}

#[async_trait::async_trait]
impl InputStream for Input {
    fn read(&mut self, _: usize) -> Result<Bytes, StreamError> {
        if *self.0.borrow() {
            Err(StreamError::Closed)
        } else {
            Ok(Bytes::new())
        }
    }
}

#[async_trait::async_trait]
impl Pollable for Input {
    async fn ready(&mut self) {
        self.closed().await;
    }
}

/// The form that the trait requires; interfaces of WASI 0.2 use the other one.
struct EndedInput;

impl AsyncRead for EndedInput {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
