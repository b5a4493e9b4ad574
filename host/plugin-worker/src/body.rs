//! Writing a body into a conversation.

use std::future::poll_fn;
use std::io::Result;
use std::pin::Pin;

use bytes::Bytes;
use http_body::Body;

use crate::frames::Frames;
use crate::socket::WriteHalf;

/// Writes a body as it arrives, and its end. If it ends early, returns the reason, for the caller to pass on.
pub(crate) async fn write_body<E>(
    write: &mut WriteHalf,
    mut body: Pin<Box<dyn Body<Data = Bytes, Error = E> + Send>>,
) -> Result<Option<E>> {
    while let Some(piece) = poll_fn(|context| body.as_mut().poll_frame(context)).await {
        let piece = match piece {
            Ok(piece) => piece,
            Err(reason) => return Ok(Some(reason)),
        };
        if let Ok(piece) = piece.into_data() {
            let mut frames = Frames::default();
            frames.add_body(&piece);
            write.write_all(frames.bytes()).await?;
        }
    }
    let mut end = Frames::default();
    end.add_end();
    write.write_all(end.bytes()).await?;
    Ok(None)
}
