//! The two sample services of `cargo xtask run`: a server that greets and a client that asks it, from
//! one source for both engines.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use bollard::Docker;
use bollard::query_parameters::{
    CreateImageOptionsBuilder, ListContainersOptionsBuilder, RemoveContainerOptionsBuilder,
    RemoveImageOptionsBuilder,
};
use futures::StreamExt;
use http_body_util::{Either, Full};
use serde_json::{Value, json};

use crate::cargo;
use crate::layout::{build_components, components_folder};

/// The crates, under `examples/`.
const SERVICES: [(&str, &str); 2] = [("server", "hello-server"), ("client", "hello-client")];

/// Static programs, so that an image needs nothing else in it.
const STATIC_TARGET: &str = if cfg!(target_arch = "aarch64") {
    "aarch64-unknown-linux-musl"
} else {
    "x86_64-unknown-linux-musl"
};

/// The services as images: one reference each, in the order of [`SERVICES`].
pub(crate) struct Samples {
    images: Vec<String>,
    /// Images that were imported, to be removed again.
    imported: Option<Docker>,
}

impl Samples {
    /// Builds components, which the wasm engine runs from where they are.
    pub(crate) fn as_components() -> Result<Self> {
        let packages: Vec<String> = SERVICES
            .iter()
            .map(|(_, name)| (*name).to_owned())
            .collect();
        build_components(&packages)?;
        let images = SERVICES
            .iter()
            .map(|(_, name)| {
                format!(
                    "file:{}",
                    components_folder().join(format!("{name}.wasm")).display()
                )
            })
            .collect();
        Ok(Samples {
            images,
            imported: None,
        })
    }

    /// Builds static programs and imports each as an image; `owner` keeps the names ours alone.
    pub(crate) async fn as_images(docker: Docker, owner: &str) -> Result<Self> {
        let programs = build_programs()?;
        let mut samples = Samples {
            images: Vec::new(),
            imported: Some(docker),
        };
        for ((_, name), program) in SERVICES.iter().zip(programs) {
            let repository = format!("{name}-sample-{owner}");
            samples.import(&repository, name, &program).await?;
            samples.images.push(format!("{repository}:latest"));
        }
        Ok(samples)
    }

    /// The target state that runs both, as `POST /v2/local/target-state` takes it.
    pub(crate) fn target(&self) -> Value {
        let services: serde_json::Map<String, Value> = SERVICES
            .iter()
            .zip(&self.images)
            .zip(1_u64..)
            .map(|(((service, program), image), id)| {
                let mut entry = json!({
                    "serviceName": service,
                    "imageId": id,
                    "image": image,
                    "running": true,
                    "environment": {},
                    "labels": {},
                    "stop_grace_period": "1s",
                });
                if self.imported.is_some() {
                    entry["command"] = json!([format!("/{program}")]);
                }
                (id.to_string(), entry)
            })
            .collect();
        json!({ "local": { "name": "sample", "config": {}, "apps": { "1": {
            "name": "hello",
            "commit": "sample",
            "releaseId": "1",
            "services": services,
            "volumes": {},
            "networks": {},
        } } } })
    }

    async fn import(&self, repository: &str, name: &str, program: &PathBuf) -> Result<()> {
        let Some(docker) = &self.imported else {
            return Ok(());
        };
        let mut archive = tar::Builder::new(Vec::new());
        let bytes =
            fs::read(program).with_context(|| format!("failed to read `{}`", program.display()))?;
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o755);
        archive.append_data(&mut header, name, bytes.as_slice())?;
        let options = CreateImageOptionsBuilder::default()
            .from_src("-")
            .repo(repository)
            .tag("latest")
            .build();
        let body = Either::Left(Full::new(archive.into_inner()?.into()));
        let mut progress = docker.create_image(Some(options), Some(body), None);
        while let Some(step) = progress.next().await {
            if let Err(error) = step {
                bail!("failed to import the image `{repository}`: {error}");
            }
        }
        Ok(())
    }

    /// Takes the imported images away again, with containers that a device left of them.
    pub(crate) async fn remove(self) {
        let Some(docker) = self.imported else { return };
        for image in &self.images {
            if let Err(error) = remove_containers_of(&docker, image).await {
                eprintln!("warning: failed to remove the containers of `{image}`: {error}");
            }
            let options = RemoveImageOptionsBuilder::default().force(true).build();
            if let Err(error) = docker.remove_image(image, Some(options), None).await {
                eprintln!("warning: failed to remove the sample image `{image}`: {error}");
            }
        }
    }
}

/// There are none but where the device was killed or its services did not stop in time.
async fn remove_containers_of(docker: &Docker, image: &str) -> Result<()> {
    let of_image = HashMap::from([("ancestor", vec![image])]);
    let all = ListContainersOptionsBuilder::default()
        .all(true)
        .filters(&of_image)
        .build();
    for container in docker.list_containers(Some(all)).await? {
        let force = RemoveContainerOptionsBuilder::default()
            .force(true)
            .v(true)
            .build();
        docker
            .remove_container(&container.id.unwrap_or_default(), Some(force))
            .await?;
    }
    Ok(())
}

fn build_programs() -> Result<Vec<PathBuf>> {
    cargo::add_target(STATIC_TARGET)?;
    let mut command = cargo::cargo(["build", "--profile", "wasm", "--target", STATIC_TARGET]);
    for (_, name) in SERVICES {
        command.args(["--package", name]);
    }
    cargo::finish(command)?;
    let folder = cargo::target_folder().join(STATIC_TARGET).join("wasm");
    Ok(SERVICES.iter().map(|(_, name)| folder.join(name)).collect())
}
