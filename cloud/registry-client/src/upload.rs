//! Uploads of blobs, which may take as long as they continue: a layer of an image can be a gigabyte, and a line slow.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt as _, TryStreamExt as _, stream};
use http_body_util::BodyExt as _;
use reqwest::Body;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// The longest time in which a registry may take no piece of a blob.
const SILENCE: Duration = Duration::from_secs(60);
/// The longest time between a registry's receipt of the last piece and its answer: it checks the digest, and may copy the
/// blob to another store.
const STORING: Duration = Duration::from_secs(300);
/// The length in bytes of a piece. Even a line of 10 kbit/s takes several of them within [`SILENCE`].
const PIECE: usize = 16 << 10;

/// Why an upload was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UploadPause {
    #[error("it accepted no data for {} seconds", SILENCE.as_secs())]
    Pieces,
    #[error("it did not answer within {} seconds after the upload", STORING.as_secs())]
    Answer,
}

/// Counts the pieces of a body that a registry has accepted; ends with the body.
pub(crate) type Progress = watch::Receiver<u64>;

/// Splits a body into short pieces, and returns it with the progress of its transfer.
pub(crate) fn in_pieces(body: Body) -> (Body, Progress) {
    let (count_sender, progress) = watch::channel(0);
    let pieces = body
        .into_data_stream()
        .map_err(io::Error::other)
        .map_ok(split)
        .try_flatten()
        .inspect(move |_| count_sender.send_modify(|count| *count += 1));
    (Body::wrap_stream(pieces), progress)
}

fn split(mut bytes: Bytes) -> impl Stream<Item = io::Result<Bytes>> {
    let pieces = std::iter::from_fn(move || {
        let length = bytes.len().min(PIECE);
        (length > 0).then(|| Ok(bytes.split_to(length)))
    });
    stream::iter(pieces)
}

/// Waits for the `answer` to an upload, as long as the upload makes progress.
///
/// # Errors
/// The upload has stopped.
pub(crate) async fn answer_to<T>(
    answer: impl Future<Output = T>,
    mut progress: Progress,
) -> Result<T, UploadPause> {
    let pause = async {
        loop {
            match timeout(SILENCE, progress.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => {
                    sleep(STORING).await;
                    return UploadPause::Answer;
                }
                Err(_) => return UploadPause::Pieces,
            }
        }
    };
    tokio::select! {
        answer = answer => Ok(answer),
        pause = pause => Err(pause),
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    #[tokio::test]
    async fn a_body_arrives_unchanged_in_short_pieces_whose_receipt_is_counted() {
        let long = Bytes::from(
            (0..=u8::MAX)
                .cycle()
                .take(2 * PIECE + 1)
                .collect::<Vec<_>>(),
        );
        let parts = [Bytes::new(), long.clone(), Bytes::from_static(b"end")];
        let (body, progress) =
            in_pieces(Body::wrap_stream(stream::iter(parts.map(io::Result::Ok))));
        let mut pieces = body.into_data_stream();
        let (mut received, mut count) = (Vec::new(), 0);
        while let Some(piece) = pieces.next().await {
            let piece = piece.unwrap();
            assert!(piece.len() <= PIECE);
            received.extend_from_slice(&piece);
            count += 1;
            assert_eq!(*progress.borrow(), count);
        }
        assert_eq!(received, [&long[..], b"end"].concat());
        drop(pieces);
        assert!(progress.has_changed().is_err(), "it ends with the body");
    }

    #[tokio::test(start_paused = true)]
    async fn an_upload_takes_hours_as_long_as_it_continues() {
        let (count_sender, progress) = watch::channel(0);
        let upload = async move {
            for count in 1..=200 {
                sleep(SILENCE - Duration::from_secs(1)).await;
                count_sender.send_replace(count);
            }
            drop(count_sender);
            sleep(STORING - Duration::from_secs(1)).await;
            201
        };
        assert_eq!(answer_to(upload, progress).await, Ok(201));
    }

    #[tokio::test(start_paused = true)]
    async fn a_registry_that_takes_nothing_or_does_not_answer_is_given_up() {
        let (count_sender, progress) = watch::channel(0);
        let upload = async move {
            count_sender.send_replace(1);
            pending::<()>().await;
            drop(count_sender);
        };
        let outcome = answer_to(upload, progress).await;
        assert_eq!(outcome, Err(UploadPause::Pieces));

        let (count_sender, progress) = watch::channel(0);
        drop(count_sender);
        let outcome = answer_to(pending::<()>(), progress).await;
        assert_eq!(outcome, Err(UploadPause::Answer));
    }
}
