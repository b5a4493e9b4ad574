//! Copies an image to the cloud's registry: blobs first, a few at a time, then manifests. Blobs that exist already,
//! here or in a neighbouring repository, are not sent again; interrupted copies are retried.

use std::time::Duration;

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use registry_client::{Blob, Content, Repository, sha256};
use registry_protocol::RepositoryName;
use reqwest::Body;

use super::progress::Bar;
use super::registry::Registries;
use super::source::Source;
use crate::failure::{Failure, Kind, Result};

/// The number of blobs copied concurrently.
const AT_ONCE: usize = 4;
/// The maximum number of attempts for a blob.
const TRIES: u32 = 3;

/// The destination of an image.
pub(super) struct Destination {
    pub(super) place: RepositoryName,
    /// Repositories that may already have some of its blobs.
    pub(super) beside: Vec<RepositoryName>,
}

/// Copies the image and returns the digest of its manifest there.
///
/// # Errors
/// If a part cannot be read, or is not accepted.
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
    let pushing = ImageCopy {
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
    // The tag keeps it in registries that delete untagged images.
    pushing.to.put_manifest(top, tag).await?;
    Ok(top.digest.clone())
}

struct ImageCopy<'a> {
    source: &'a Source,
    from: Option<Repository<'a>>,
    to: Repository<'a>,
    beside: Vec<RepositoryName>,
    bar: &'a Bar,
}

impl ImageCopy<'_> {
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
