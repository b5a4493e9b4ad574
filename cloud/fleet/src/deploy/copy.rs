//! Puts an image into its place: blobs first, a few at a time, then manifests. What is there already, here or
//! in a neighbouring repository, is not sent again; what breaks off is tried anew.

use std::time::Duration;

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use registry_client::{Blob, Content, Repository, sha256};
use registry_protocol::Place;
use reqwest::Body;

use super::progress::Bar;
use super::registry::Registries;
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
            (Some(from), _) => Body::wrap_stream(from.blob(blob).await?.into_stream()),
            (None, Source::File { component, .. }) => {
                let parts = [&component.artifact.layer, &component.artifact.config];
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
