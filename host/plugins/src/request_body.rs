//! A request's body on its way to a guest: whole where it is small, a stream where it is not, and never
//! more than the plugin's limit.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame};
use plugin_protocol::{Failure, RequestBody, RequestStream};

/// What fits in here is given to the guest whole, in bytes.
const WHOLE: usize = 64 << 10;

/// A body of which no more comes than a plugin takes.
struct LimitedBody {
    /// Has come and was not read yet.
    ready: Bytes,
    /// None once it has ended.
    rest: Option<RequestStream>,
    /// How many more bytes may come.
    left: usize,
    fault: Arc<RequestFault>,
}

/// What went wrong with a stream, for those who do not hold it: a guest cannot tell its early end from
/// a proper one.
#[derive(Default)]
pub(crate) struct RequestFault(AtomicU8);

const TOO_LARGE: u8 = 1;
const BROKEN: u8 = 2;

impl RequestFault {
    /// The failure that the call ends with, if there is one.
    pub(crate) fn failure(&self, limit: usize) -> Option<Failure> {
        match self.0.load(Relaxed) {
            TOO_LARGE => Some(Failure::BodyTooLarge { limit }),
            BROKEN => Some(Failure::BodyIncomplete("it broke off".to_owned())),
            _ => None,
        }
    }
}

/// Takes `body`, of which at most `limit` bytes may come.
pub(crate) async fn read<B>(
    body: B,
    limit: usize,
    fault: &Arc<RequestFault>,
) -> Result<RequestBody, Failure>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: std::fmt::Display,
{
    if body.is_end_stream() {
        return Ok(RequestBody::Empty);
    }
    let size = body.size_hint();
    if size.lower() > limit as u64 {
        return Err(Failure::BodyTooLarge { limit });
    }
    let rest: RequestStream =
        Box::pin(http_body_util::BodyExt::map_err(body, |error: B::Error| {
            error.to_string()
        }));
    let mut stream = LimitedBody {
        ready: Bytes::new(),
        rest: Some(rest),
        left: limit,
        fault: Arc::clone(fault),
    };
    if size.lower() > WHOLE as u64 {
        return Ok(RequestBody::Stream(Box::pin(stream)));
    }
    // Small, or of unknown size: what comes until it is too much to be small.
    let mut whole = Vec::with_capacity(usize::try_from(size.lower()).unwrap_or(0));
    while poll_fn(|context| stream.poll_ready(context)).await {
        whole.extend_from_slice(&stream.ready);
        stream.ready = Bytes::new();
        if whole.len() > WHOLE {
            stream.ready = Bytes::from(whole);
            return Ok(RequestBody::Stream(Box::pin(stream)));
        }
    }
    match fault.failure(limit) {
        Some(failure) => Err(failure),
        None if whole.is_empty() => Ok(RequestBody::Empty),
        None => Ok(RequestBody::Whole(whole)),
    }
}

impl LimitedBody {
    /// Waits for bytes in `ready`; false at the end.
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<bool> {
        while self.ready.is_empty() {
            let Some(rest) = &mut self.rest else {
                return Poll::Ready(false);
            };
            let fault = match ready!(rest.as_mut().poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) if data.len() > self.left => TOO_LARGE,
                    Ok(data) => {
                        self.left -= data.len();
                        self.ready = data;
                        continue;
                    }
                    // Trailers mean nothing to a plugin.
                    Err(_) => continue,
                },
                Some(Err(_)) => BROKEN,
                None => 0,
            };
            if fault != 0 {
                self.fault.0.store(fault, Relaxed);
            }
            self.rest = None;
        }
        Poll::Ready(true)
    }
}

impl Body for LimitedBody {
    type Data = Bytes;
    type Error = String;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, String>>> {
        if ready!(self.poll_ready(context)) {
            let piece = std::mem::take(&mut self.ready);
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        let is_broken = self.fault.0.load(Relaxed) != 0;
        Poll::Ready(is_broken.then(|| Err("it broke off, or is too large".to_owned())))
    }
}
