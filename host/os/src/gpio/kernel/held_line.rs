//! A line that the kernel has granted: its value and its edges.

use std::io;
use std::sync::{Arc, OnceLock};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use gpiocdev::line::{EdgeKind, Offset, Value};
use gpiocdev::request::Config;
use gpiocdev::{Request, line};
use parking_lot::Mutex;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::gpio::{Edge, EdgeDetection, GpioError, GpioLine};

/// A line that the kernel has granted.
pub(super) struct KernelLine {
    name: String,
    offset: Offset,
    config: Config,
    request: Arc<Request>,
    /// Created by the first wait.
    waiting: OnceLock<AsyncFd<Arc<Request>>>,
    /// The number of the last edge that was read.
    last: Mutex<u32>,
}

impl KernelLine {
    /// Prepares a line that was granted as `config` says, for waits that use no thread.
    pub(super) fn new(
        name: String,
        offset: Offset,
        config: Config,
        request: Request,
    ) -> Result<Self, GpioError> {
        let nonblocking =
            fcntl_getfl(&request).and_then(|flags| fcntl_setfl(&request, flags | OFlags::NONBLOCK));
        nonblocking.map_err(|error| GpioError::Failed(format!("the line {name}: {error}")))?;
        Ok(KernelLine {
            name,
            offset,
            config,
            request: Arc::new(request),
            waiting: OnceLock::new(),
            last: Mutex::new(0),
        })
    }

    fn failed(&self, error: impl std::fmt::Display) -> GpioError {
        GpioError::Failed(format!("the line {}: {error}", self.name))
    }

    /// Returns the next edge; `None` if none was recorded.
    fn read_edge(&self) -> io::Result<Option<Edge>> {
        // One at a time: `Request::read_edge_event` reads several, and returns one.
        let mut buffer = vec![0; self.request.edge_event_u64_size()];
        let mut last = self.last.lock();
        let event = self
            .request
            .read_edge_events_into_slice(&mut buffer)
            .and_then(|_| self.request.edge_event_from_slice(&buffer));
        let event = match event {
            Ok(event) => event,
            Err(error) if errno(&error) == Some(Errno::AGAIN) => return Ok(None),
            Err(error) => return Err(io::Error::other(error)),
        };
        // Edges are numbered, so lost ones leave a gap. The kernel may start again at 1.
        let number = event.line_seqno;
        let before = if number > *last { *last } else { 0 };
        *last = number;
        Ok(Some(Edge {
            is_rising: event.kind == EdgeKind::Rising,
            nanoseconds: event.timestamp_ns,
            lost: (number - before).saturating_sub(1),
        }))
    }

    #[expect(
        deprecated,
        reason = "the descriptor stays open for as long as the `Arc` does, and the successor is unsafe to call"
    )]
    fn waiting(&self) -> io::Result<&AsyncFd<Arc<Request>>> {
        if let Some(waiting) = self.waiting.get() {
            return Ok(waiting);
        }
        let waiting = AsyncFd::with_interest(Arc::clone(&self.request), Interest::READABLE)?;
        Ok(self.waiting.get_or_init(|| waiting))
    }
}

impl GpioLine for KernelLine {
    fn value(&self) -> Result<bool, GpioError> {
        let value = self.request.value(self.offset);
        let value = value.map_err(|error| self.failed(error))?;
        Ok(value == Value::Active)
    }

    fn set(&self, on: bool) -> Result<(), GpioError> {
        let set = self.request.set_value(self.offset, value(on));
        set.map_err(|error| self.failed(error))
    }

    fn detect_edges(&self, detection: EdgeDetection) -> Result<(), GpioError> {
        let mut config = self.config.clone();
        config.with_edge_detection(match detection {
            EdgeDetection::On => Some(line::EdgeDetection::BothEdges),
            EdgeDetection::Off => None,
        });
        let forget = || -> Result<(), GpioError> {
            while let Some(_old) = self.read_edge().map_err(|error| self.failed(error))? {}
            Ok(())
        };
        // Old edges are discarded before recording starts, since none are added then; afterwards, an endless series of
        // edges would keep this from ending.
        if detection == EdgeDetection::On {
            forget()?;
        }
        let changed = self.request.reconfigure(&config);
        changed.map_err(|error| match errno(&error) {
            Some(Errno::INVAL | Errno::OPNOTSUPP | Errno::NXIO) => GpioError::Unsupported(format!(
                "the line {} has no interrupt, so nobody can wait for its edges: {error}",
                self.name
            )),
            _ => self.failed(error),
        })
    }

    fn next_edge(&self) -> BoxFuture<'_, Result<Edge, GpioError>> {
        async move {
            // An edge that is already there needs no turn of the reactor, so even a caller that does not wait receives
            // it.
            if let Some(edge) = self.read_edge().map_err(|error| self.failed(error))? {
                return Ok(edge);
            }
            let waiting = self.waiting().map_err(|error| self.failed(error))?;
            loop {
                let ready = waiting.readable().await;
                let mut ready = ready.map_err(|error| self.failed(error))?;
                match self.read_edge() {
                    Ok(Some(edge)) => return Ok(edge),
                    Ok(None) => ready.clear_ready(),
                    Err(error) => return Err(self.failed(error)),
                }
            }
        }
        .boxed()
    }
}

pub(super) fn value(on: bool) -> Value {
    if on { Value::Active } else { Value::Inactive }
}

/// Returns the operating system's error behind an error of the crate.
pub(super) fn errno(error: &gpiocdev::Error) -> Option<Errno> {
    match error {
        gpiocdev::Error::Os(errno) | gpiocdev::Error::Uapi(_, gpiocdev_uapi::Error::Os(errno)) => {
            Some(Errno::from_raw_os_error(errno.0))
        }
        _ => None,
    }
}
