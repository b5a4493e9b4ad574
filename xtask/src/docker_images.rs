//! Operations of chores in a Docker engine: creating and moving images, removing containers.

use anyhow::Result;
use bollard::Docker;
use bollard::errors::Error;
use bollard::models::ContainerSummary;
use bollard::query_parameters::{
    CreateImageOptions, CreateImageOptionsBuilder, ListContainersOptions, PushImageOptionsBuilder,
    RemoveContainerOptionsBuilder,
};
use bytes::Bytes;
use futures::TryStreamExt as _;
use http_body_util::{Either, Full};

/// Pulls an image from the registry in its name.
pub(crate) async fn pull(docker: &Docker, image: &str) -> Result<()> {
    let (name, tag) = image.split_once(':').unwrap_or((image, "latest"));
    let options = CreateImageOptionsBuilder::new().from_image(name).tag(tag);
    create(docker, options.build(), None).await
}

/// Creates an image from an archive of its files, with `changes` as in a Dockerfile.
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

/// Removes these containers with their volumes, by force; returns the result for each.
pub(crate) async fn remove_containers(
    docker: &Docker,
    which: ListContainersOptions,
) -> Vec<(ContainerSummary, Result<(), Error>)> {
    let by_force = RemoveContainerOptionsBuilder::new()
        .force(true)
        .v(true)
        .build();
    let mut removed = Vec::new();
    for container in docker
        .list_containers(Some(which))
        .await
        .unwrap_or_default()
    {
        let id = container.id.clone().unwrap_or_default();
        let result = docker.remove_container(&id, Some(by_force.clone())).await;
        removed.push((container, result));
    }
    removed
}
