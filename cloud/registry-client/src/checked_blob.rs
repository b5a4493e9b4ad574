//! The bytes of a blob, checked against its digest and its length as they arrive.

use std::io;

use bytes::Bytes;
use futures::stream::{self, BoxStream, Stream, StreamExt as _, TryStreamExt as _};
use sha2::{Digest as _, Sha256};

use crate::manifest::Blob;

/// A blob that is being read. The stream ends with an error if the bytes do not match its digest and length.
pub struct CheckedBlob {
    pieces: BoxStream<'static, io::Result<Bytes>>,
    size: u64,
}

impl CheckedBlob {
    pub(crate) fn new(
        pieces: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
        blob: &Blob,
    ) -> Self {
        CheckedBlob {
            pieces: checked(pieces.boxed(), blob).boxed(),
            size: blob.size,
        }
    }

    /// Returns the pieces, for a request that passes them on.
    #[must_use]
    pub fn into_stream(self) -> BoxStream<'static, io::Result<Bytes>> {
        self.pieces
    }

    /// Reads the whole blob into memory. The caller must have bounded the length that the manifest states.
    ///
    /// # Errors
    /// It ends early, or does not match its digest and length.
    pub async fn bytes(mut self) -> io::Result<Vec<u8>> {
        // Memory is allocated only as data arrives: the stated length cannot be trusted.
        let likely = usize::try_from(self.size.min(1 << 20)).unwrap_or_default();
        let mut bytes = Vec::with_capacity(likely);
        while let Some(piece) = self.pieces.try_next().await? {
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes)
    }
}

/// Returns the bytes of a blob, and an error instead of the end if they are not the right ones.
fn checked(
    pieces: BoxStream<'static, io::Result<Bytes>>,
    blob: &Blob,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let digest = blob.digest.clone();
    let begin = (pieces, Sha256::new(), blob.size);
    stream::try_unfold(begin, move |(mut pieces, mut hash, left)| {
        let digest = digest.clone();
        async move {
            let Some(piece) = pieces.next().await.transpose()? else {
                let is_whole = format!("sha256:{}", hex::encode(hash.finalize())) == digest;
                return if left == 0 && is_whole {
                    Ok(None)
                } else {
                    Err(wrong("a part of the image does not match its digest"))
                };
            };
            let left = left
                .checked_sub(piece.len() as u64)
                .ok_or_else(|| wrong("a part of the image is longer than its manifest says"))?;
            hash.update(&piece);
            Ok(Some((piece, (pieces, hash, left))))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::sha256;

    #[tokio::test]
    async fn bytes_that_are_not_those_of_the_digest_end_in_an_error() {
        for (sent, expected, size, fits) in [
            (&b"abc"[..], &b"abc"[..], 3, true),
            (b"abd", b"abc", 3, false),
            (b"ab", b"abc", 3, false),
            (b"abcd", b"abc", 3, false),
        ] {
            let blob = serde_json::json!({ "digest": sha256(expected), "size": size });
            let blob: Blob = serde_json::from_value(blob).expect("a blob");
            let pieces = stream::iter([Ok(Bytes::copy_from_slice(sent))]);
            let bytes = CheckedBlob::new(pieces, &blob).bytes().await;
            assert_eq!(bytes.is_ok(), fits, "{}", String::from_utf8_lossy(sent));
        }
    }
}
