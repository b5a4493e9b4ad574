//! The one image that every test can build on: this machine's static busybox, with all its commands.

use std::process::Command;

use anyhow::{Context, Result, bail};
use bollard::Docker;
use bollard::query_parameters::{
    CreateImageOptionsBuilder, PushImageOptionsBuilder, RemoveImageOptions,
};
use futures::TryStreamExt;
use http_body_util::{Either, Full};

use crate::packages::program;

/// Puts `busybox:latest` into the registry, and leaves nothing of it in the engine.
pub(super) fn push(uri: &str, registry: &str) -> Result<()> {
    let archive = root_file_system()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let docker = Docker::connect_with_host(uri)?.negotiate_version().await?;
        let repository = format!("{registry}/busybox");
        let import = CreateImageOptionsBuilder::new()
            .from_src("-")
            .repo(&repository)
            .tag("latest")
            .changes(vec!["CMD [\"sh\"]".into(), "ENV PATH=/bin".into()])
            .build();
        let body = Either::Left(Full::new(archive.into()));
        docker
            .create_image(Some(import), Some(body), None)
            .try_for_each(|_| async { Ok(()) })
            .await
            .context("failed to import busybox")?;
        let latest = PushImageOptionsBuilder::new().tag("latest").build();
        docker
            .push_image(&repository, Some(latest), None)
            .try_for_each(|_| async { Ok(()) })
            .await
            .context("failed to push busybox")?;
        let image = format!("{repository}:latest");
        docker
            .remove_image(&image, None::<RemoveImageOptions>, None)
            .await?;
        Ok(())
    })
}

fn root_file_system() -> Result<Vec<u8>> {
    let busybox = program("busybox").context("busybox is not installed")?;
    let list = Command::new(&busybox).arg("--list").output()?;
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
    archive.append_path_with_name(&busybox, "bin/busybox")?;
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
