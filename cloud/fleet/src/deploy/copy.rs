//! Puts an image into its place: blobs first, a few at a time, then manifests. What is there already, here or
//! in a neighbouring repository, is not sent again; what breaks off is tried anew.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use registry_protocol::Place;
use reqwest::Body;
use sha2::{Digest as _, Sha256};

use super::manifest::{Blob, Content, sha256};
use super::progress::Bar;
use super::registry::{Registries, Repository};
use super::source::Source;
use crate::failure::{Failure, Kind, Result};

/// Blobs at a time.
const AT_ONCE: usize = 4;
/// How often a blob is tried.
const TRIES: u32 = 3;

/// Where an image goes.
pub(super) struct Destination {
    pub(super) place: Place,
    /// Repositories that may have blobs of it.
    pub(super) beside: Vec<Place>,
}

/// Copies; the digest of what is there then.
///
/// # Errors
/// Where a part cannot be read, or is not taken.
pub(super) async fn push(
    registries: &Registries<'_>,
    source: &Source,
    to: &Destination,
    tag: &str,
    bar: &Bar,
) -> Result<String> {
    let mut beside = to.beside.clone();
    if let Source::Remote { place, .. } = source {
        beside.push(place.clone());
    }
    beside.retain(|place| place.host == to.place.host && *place != to.place);
    let destination = registries.own(&to.place, &beside);
    let from = match source {
        Source::Remote { place, .. } => Some(registries.other(place)),
        Source::File { .. } => None,
    };
    let pushing = Pushing {
        source,
        from,
        to: destination,
        beside,
        bar,
    };
    for (manifest, image) in source.images() {
        let mut blobs: Vec<&Blob> = image.blobs().collect();
        blobs.sort_by(|one, other| one.digest.cmp(&other.digest));
        blobs.dedup_by(|one, other| one.digest == other.digest);
        stream::iter(blobs)
            .map(|blob| pushing.blob(blob))
            .buffer_unordered(AT_ONCE)
            .try_collect::<()>()
            .await?;
        pushing.to.put_manifest(manifest, &manifest.digest).await?;
    }
    let top = source.top();
    if matches!(top.content, Content::Index(_)) {
        pushing.to.put_manifest(top, &top.digest).await?;
    }
    // A registry that clears away what has no tag keeps it so.
    pushing.to.put_manifest(top, tag).await?;
    Ok(top.digest.clone())
}

struct Pushing<'a> {
    source: &'a Source,
    from: Option<Repository<'a>>,
    to: Repository<'a>,
    beside: Vec<Place>,
    bar: &'a Bar,
}

impl Pushing<'_> {
    async fn blob(&self, blob: &Blob) -> Result<()> {
        let mut tried = 0;
        loop {
            tried += 1;
            let failure = match self.try_blob(blob).await {
                Ok(()) => return Ok(()),
                Err(failure) => failure,
            };
            if tried == TRIES || matches!(failure.kind, Kind::NotFound) {
                return Err(failure);
            }
            tokio::time::sleep(Duration::from_secs(u64::from(tried))).await;
        }
    }

    async fn try_blob(&self, blob: &Blob) -> Result<()> {
        if self.to.has(&blob.digest).await? {
            self.bar.more(blob.size);
            return Ok(());
        }
        for place in &self.beside {
            if self.to.take_over(&blob.digest, place).await? {
                self.bar.more(blob.size);
                return Ok(());
            }
        }
        let body = match (&self.from, self.source) {
            (Some(from), _) => Body::wrap_stream(checked(from.blob(&blob.digest).await?, blob)),
            (None, Source::File { component, .. }) => {
                let parts = [&component.layer, &component.config];
                let bytes = parts.into_iter().find(|bytes| sha256(bytes) == blob.digest);
                let bytes = bytes.cloned().ok_or_else(|| {
                    Failure::failed(format!("the component has no part `{}`", blob.digest))
                })?;
                Body::from(bytes)
            }
            (None, Source::Remote { name, .. }) => {
                return Err(Failure::failed(format!("`{name}` is not in a registry")));
            }
        };
        self.to.put(blob, body).await?;
        self.bar.more(blob.size);
        Ok(())
    }
}

/// The bytes of a blob, with an error in place of an end that is not its own.
fn checked(
    pieces: BoxStream<'static, reqwest::Result<Bytes>>,
    blob: &Blob,
) -> impl futures::Stream<Item = io::Result<Bytes>> + Send + 'static {
    let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let digest = blob.digest.clone();
    let begin = (pieces, Sha256::new(), blob.size);
    stream::try_unfold(begin, move |(mut pieces, mut hash, left)| {
        let digest = digest.clone();
        async move {
            let Some(piece) = pieces.next().await.transpose().map_err(io::Error::other)? else {
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

    #[tokio::test]
    async fn bytes_that_are_not_those_of_the_digest_end_in_an_error() {
        for (sent, said, size, fits) in [
            (&b"abc"[..], &b"abc"[..], 3, true),
            (b"abd", b"abc", 3, false),
            (b"ab", b"abc", 3, false),
            (b"abcd", b"abc", 3, false),
        ] {
            let blob = serde_json::json!({ "digest": sha256(said), "size": size });
            let blob: Blob = serde_json::from_value(blob).expect("a blob");
            let pieces = stream::iter([Ok(Bytes::copy_from_slice(sent))]).boxed();
            let got: io::Result<Vec<Bytes>> = checked(pieces, &blob).try_collect().await;
            assert_eq!(got.is_ok(), fits, "{}", String::from_utf8_lossy(sent));
        }
    }
}
