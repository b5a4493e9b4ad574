//! Images in a Docker engine, as chores make and move them.

use anyhow::Result;
use bollard::Docker;
use bollard::query_parameters::{
    CreateImageOptions, CreateImageOptionsBuilder, PushImageOptionsBuilder,
};
use bytes::Bytes;
use futures::TryStreamExt as _;
use http_body_util::{Either, Full};

/// Pulls an image from the registry that its name leads to.
pub(crate) async fn pull(docker: &Docker, image: &str) -> Result<()> {
    let (name, tag) = image.split_once(':').unwrap_or((image, "latest"));
    let options = CreateImageOptionsBuilder::new().from_image(name).tag(tag);
    create(docker, options.build(), None).await
}

/// Makes an image of an archive of its files, with `changes` as in a Dockerfile.
pub(crate) async fn import(
    docker: &Docker,
    (repository, tag): (&str, &str),
    changes: Vec<String>,
    archive: Vec<u8>,
) -> Result<()> {
    let options = CreateImageOptionsBuilder::new()
        .from_src("-")
        .repo(repository)
        .tag(tag);
    let options = options.changes(changes).build();
    create(docker, options, Some(archive.into())).await
}

async fn create(
    docker: &Docker,
    options: CreateImageOptions,
    archive: Option<Bytes>,
) -> Result<()> {
    let body = archive.map(|archive| Either::Left(Full::new(archive)));
    let progress = docker.create_image(Some(options), body, None);
    Ok(progress.try_for_each(|_| async { Ok(()) }).await?)
}

/// Pushes the latest image of a repository.
pub(crate) async fn push(docker: &Docker, repository: &str) -> Result<()> {
    let latest = PushImageOptionsBuilder::new().tag("latest").build();
    let progress = docker.push_image(repository, Some(latest), None);
    Ok(progress.try_for_each(|_| async { Ok(()) }).await?)
}
