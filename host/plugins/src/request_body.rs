//! A request's body on its way to a guest: whole if it is small, a stream if it is not, and never more than the
//! plugin's limit.

use std::future::poll_fn;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http_body::{Body, Frame};
use http_body_util::{BodyExt as _, BodyStream, LengthLimitError, Limited, StreamBody};
use plugin_protocol::{Failure, RequestBody, RequestStream};

/// The largest body that is passed to the guest whole, in bytes.
const WHOLE: usize = 64 << 10;

/// What went wrong with a stream, for code that does not hold it: a guest cannot distinguish an early end from a proper
/// one.
pub(crate) type RequestFault = OnceLock<Failure>;

/// Reads `body`, which may have at most `limit` bytes.
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
    let stream_fault = Arc::clone(fault);
    let body = Limited::new(body.map_err(|error| error.to_string()), limit);
    let mut stream: RequestStream = Box::pin(body.map_err(move |error| {
        let _ = stream_fault.set(if error.is::<LengthLimitError>() {
            Failure::BodyTooLarge { limit }
        } else {
            Failure::BodyIncomplete("the connection ended before all of it arrived".to_owned())
        });
        "the connection ended before all of it arrived, or it is too large".to_owned()
    }));
    if size.lower() > WHOLE as u64 {
        return Ok(RequestBody::Stream(stream));
    }
    // Small, or of unknown size: read until it is too large to be small.
    let mut whole = Vec::with_capacity(usize::try_from(size.lower()).unwrap_or(0));
    while let Some(Ok(frame)) = poll_fn(|context| stream.as_mut().poll_frame(context)).await {
        // Trailers mean nothing to a plugin.
        whole.extend_from_slice(&frame.into_data().unwrap_or_default());
        if whole.len() > WHOLE {
            let begun = stream::iter([Ok(Frame::data(Bytes::from(whole)))]);
            let body = StreamBody::new(begun.chain(BodyStream::new(stream)));
            return Ok(RequestBody::Stream(Box::pin(body)));
        }
    }
    match fault.get() {
        Some(failure) => Err(failure.clone()),
        None if whole.is_empty() => Ok(RequestBody::Empty),
        None => Ok(RequestBody::Whole(whole)),
    }
}
