//! The base image of all test images: busybox with all its commands, from this machine if its program is linked
//! statically, otherwise from Docker Hub.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use bollard::Docker;
use bollard::models::ContainerCreateBody;
use bollard::query_parameters::{
    CreateContainerOptions, RemoveContainerOptions, RemoveImageOptions,
};
use futures::TryStreamExt;

use crate::docker_images;
use crate::interrupted::runtime;
use crate::packages::program;

/// The label on the image, and so on every container and image derived from it: the registry that it is for.
pub(crate) const REGISTRY_LABEL: &str = "io.platform.xtask.registry";

/// Puts `busybox:latest` into the registry, and leaves no trace of it in the engine.
pub(crate) fn push(uri: &str, registry: &str) -> Result<()> {
    let repository = format!("{registry}/busybox");
    runtime()?.block_on(async {
        let docker = Docker::connect_with_host(uri)?.negotiate_version().await?;
        let archive = match find_on_this_machine() {
            Some(busybox) => root_file_system(&busybox)?,
            None => pulled(&docker).await?,
        };
        let changes = vec![
            "CMD [\"sh\"]".into(),
            "ENV PATH=/bin".into(),
            format!("LABEL {REGISTRY_LABEL}={registry}"),
        ];
        docker_images::import(&docker, (&repository, "latest"), changes, archive)
            .await
            .context("failed to import busybox")?;
        let pushed = docker_images::push(&docker, &repository).await;
        pushed.context("failed to push busybox")?;
        let image = format!("{repository}:latest");
        docker
            .remove_image(&image, None::<RemoveImageOptions>, None)
            .await?;
        Ok(())
    })
}

/// Returns the machine's own program if it needs no other files in a container.
pub(crate) fn find_on_this_machine() -> Option<PathBuf> {
    program("busybox").filter(|busybox| is_static(busybox))
}

/// Returns whether the program names no loader of shared libraries, whose path would be near its beginning.
fn is_static(program: &Path) -> bool {
    let mut start = Vec::new();
    let read = File::open(program).and_then(|file| file.take(4096).read_to_end(&mut start));
    read.is_ok()
        && !start
            .windows(4)
            .any(|window| window == b"/ld-" || window == b"ld64")
}

/// Returns the files of Docker Hub's image; the image is removed from the engine unless it was there before.
async fn pulled(docker: &Docker) -> Result<Vec<u8>> {
    const IMAGE: &str = "busybox:latest";
    let was_there = docker.inspect_image(IMAGE).await.is_ok();
    if !was_there {
        println!("pulling {IMAGE} for the Docker tests");
        let pulled = docker_images::pull(docker, IMAGE).await;
        pulled.with_context(|| {
            format!("this machine has no static busybox, and the engine cannot pull `{IMAGE}`")
        })?;
    }
    let body = ContainerCreateBody {
        image: Some(IMAGE.into()),
        ..ContainerCreateBody::default()
    };
    let made = docker
        .create_container(None::<CreateContainerOptions>, body)
        .await?;
    let archive = docker
        .export_container(&made.id)
        .try_fold(Vec::new(), |mut archive, part| async move {
            archive.extend_from_slice(&part);
            Ok(archive)
        })
        .await;
    docker
        .remove_container(&made.id, None::<RemoveContainerOptions>)
        .await?;
    if !was_there {
        docker
            .remove_image(IMAGE, None::<RemoveImageOptions>, None)
            .await?;
    }
    archive.with_context(|| format!("failed to read the files of `{IMAGE}`"))
}

fn root_file_system(busybox: &Path) -> Result<Vec<u8>> {
    let list = Command::new(busybox).arg("--list").output()?;
    if !list.status.success() {
        bail!("`busybox --list` failed ({})", list.status);
    }
    let mut archive = tar::Builder::new(Vec::new());
    for folder in ["bin", "data", "etc", "tmp"] {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Directory);
        header.set_mode(if folder == "tmp" { 0o1777 } else { 0o755 });
        header.set_size(0);
        archive.append_data(&mut header, folder, std::io::empty())?;
    }
    archive.append_path_with_name(busybox, "bin/busybox")?;
    for command in String::from_utf8_lossy(&list.stdout).lines() {
        if command == "busybox" {
            continue;
        }
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_mode(0o777);
        header.set_size(0);
        archive.append_link(&mut header, format!("bin/{command}"), "busybox")?;
    }
    Ok(archive.into_inner()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_need_libraries_are_distinguished_from_static_ones() {
        let folder = tempfile::tempdir().unwrap();
        for (start, expected) in [
            ("\u{7f}ELF...../lib64/ld-linux-x86-64.so.2\0", false),
            ("\u{7f}ELF...../lib/ld-musl-aarch64.so.1\0", false),
            ("\u{7f}ELF.....GNU", true),
        ] {
            let program = folder.path().join("program");
            std::fs::write(&program, start).unwrap();
            assert_eq!(is_static(&program), expected, "{start}");
        }
        assert!(!is_static(&folder.path().join("none")));
    }
}
