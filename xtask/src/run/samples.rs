//! The two sample services of `cargo xtask run`: a server that sends greetings and a client that requests them, from
//! one source for both engines.

use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use bollard::Docker;
use bollard::errors::Error;
use bollard::query_parameters::RemoveImageOptionsBuilder;
use serde_json::{Value, json};

use super::engine_choice::Engine;
use crate::layout::{build_components, build_small, components_folder};
use crate::{cargo, docker_address, docker_images};

/// The crates, under `examples/`.
const SERVICES: [(&str, &str); 2] = [("server", "hello-server"), ("client", "hello-client")];

/// Static programs, so an image needs no other files.
const STATIC_TARGET: &str = if cfg!(target_arch = "aarch64") {
    "aarch64-unknown-linux-musl"
} else {
    "x86_64-unknown-linux-musl"
};

/// The first process of a container only receives signals that it handles.
const STOPS_AT_ONCE: &str = "    stop_signal: SIGKILL\n";

/// The built services: one file each, in the order of [`SERVICES`].
pub(crate) enum Samples {
    /// Static programs.
    Programs(Vec<PathBuf>),
    /// Components, which the wasm engine runs from their place.
    Components(Vec<PathBuf>),
}

impl Samples {
    pub(crate) fn build(engine: &Engine) -> Result<Self> {
        match engine {
            Engine::Docker(_) => build_programs().map(Samples::Programs),
            Engine::Wasm => {
                build_components(&packages())?;
                let file = |(_, name)| components_folder().join(format!("{name}.wasm"));
                Ok(Samples::Components(SERVICES.map(file).into()))
            }
        }
    }

    /// Returns the images that [`Samples::import`] creates; `owner` makes the names unique to us.
    pub(crate) fn image_names(&self, owner: &str) -> Vec<String> {
        match self {
            Samples::Programs(_) => SERVICES
                .map(|(_, name)| format!("{name}-sample-{owner}:latest"))
                .into(),
            Samples::Components(_) => Vec::new(),
        }
    }

    /// Returns the number of services.
    pub(crate) fn count(&self) -> usize {
        SERVICES.len()
    }

    /// Returns the images that [`Samples::push`] briefly has in the engine.
    pub(crate) fn pushed_names(&self, registry: SocketAddr) -> Vec<String> {
        match self {
            Samples::Programs(_) => SERVICES
                .map(|(_, name)| format!("{registry}/{name}:latest"))
                .into(),
            Samples::Components(_) => Vec::new(),
        }
    }

    /// Creates images of the programs, and pushes them to a registry; none of them stays in the engine.
    pub(crate) async fn push(&self, address: &str, registry: SocketAddr) -> Result<()> {
        let Samples::Programs(programs) = self else {
            return Ok(());
        };
        let docker = docker_address::connect(address).await?;
        let names = self.pushed_names(registry);
        for (((_, name), program), image) in SERVICES.iter().zip(programs).zip(&names) {
            import(&docker, image, name, program).await?;
            let repository = format!("{registry}/{name}");
            let pushed = docker_images::push(&docker, &repository).await;
            pushed.with_context(|| format!("failed to push `{image}`"))?;
        }
        remove_images(address, &names).await
    }

    /// Returns a compose file for a release of both services, whose server greets with this word. Images of programs
    /// are in `registry`.
    pub(crate) fn compose(&self, registry: SocketAddr, greeting: &str) -> String {
        let mut text = String::from("services:\n");
        for (index, (service, name)) in SERVICES.iter().enumerate() {
            let _ = match self {
                Samples::Programs(_) => write!(
                    text,
                    "  {service}:\n    image: {registry}/{name}:latest\n    command: [\"/{name}\"]\n\
                     {STOPS_AT_ONCE}"
                ),
                Samples::Components(files) => write!(
                    text,
                    "  {service}:\n    image: {}\n",
                    json!(files[index].to_string_lossy())
                ),
            };
            if *service == "server" {
                let _ = writeln!(
                    text,
                    "    environment:\n      GREETING: {}",
                    json!(greeting)
                );
            }
        }
        text
    }

    /// Creates images of the programs.
    pub(crate) async fn import(&self, address: &str, owner: &str) -> Result<()> {
        let Samples::Programs(programs) = self else {
            return Ok(());
        };
        let docker = docker_address::connect(address).await?;
        let services = SERVICES.iter().zip(programs).zip(self.image_names(owner));
        for (((_, name), program), image) in services {
            import(&docker, &image, name, program).await?;
        }
        Ok(())
    }

    /// Returns the target state that runs both, in the form of `POST /v2/local/target-state`. Names on the engine
    /// contain `owner`, so that devices that share an engine do not conflict.
    pub(crate) fn target(&self, owner: &str) -> Value {
        let services: serde_json::Map<String, Value> = SERVICES
            .iter()
            .enumerate()
            .map(|(index, (service, program))| {
                let mut entry = json!({
                    "serviceName": service,
                    "imageId": index + 1,
                    "running": true,
                    "environment": {},
                    "labels": {},
                });
                match self {
                    Samples::Programs(_) => {
                        entry["image"] = json!(self.image_names(owner)[index]);
                        entry["command"] = json!([format!("/{program}")]);
                        // The first process of a container only receives signals that it handles.
                        entry["stop_signal"] = json!("SIGKILL");
                    }
                    Samples::Components(files) => {
                        entry["image"] = json!(format!("file:{}", files[index].display()));
                    }
                }
                ((index + 1).to_string(), entry)
            })
            .collect();
        // Networks are named after the app's number, containers after the commit.
        let app = std::process::id().to_string();
        json!({ "local": { "name": "sample", "config": {}, "apps": { app: {
            "name": "hello",
            "commit": owner,
            "releaseId": "1",
            "services": services,
            "volumes": {},
            "networks": {},
        } } } })
    }
}

async fn import(docker: &Docker, image: &str, name: &str, program: &Path) -> Result<()> {
    let mut archive = tar::Builder::new(Vec::new());
    let bytes =
        fs::read(program).with_context(|| format!("failed to read `{}`", program.display()))?;
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes.len() as u64);
    header.set_mode(0o755);
    archive.append_data(&mut header, name, bytes.as_slice())?;
    let name = image.rsplit_once(':').unwrap_or((image, "latest"));
    docker_images::import(docker, name, Vec::new(), archive.into_inner()?)
        .await
        .with_context(|| format!("failed to import the image `{image}`"))
}

/// Removes imported images; images that are gone already are not an error.
pub(crate) async fn remove_images(address: &str, images: &[String]) -> Result<()> {
    if images.is_empty() {
        return Ok(());
    }
    let docker = docker_address::connect(address).await?;
    for image in images {
        let by_force = RemoveImageOptionsBuilder::default().force(true).build();
        match docker.remove_image(image, Some(by_force), None).await {
            Ok(_) => {}
            Err(Error::DockerResponseServerError {
                status_code: 404, ..
            }) => {}
            Err(error) => {
                return Err(error)
                    .with_context(|| format!("failed to remove the sample image `{image}`"));
            }
        }
    }
    Ok(())
}

fn build_programs() -> Result<Vec<PathBuf>> {
    build_small(&packages(), STATIC_TARGET)?;
    let folder = cargo::target_folder().join(STATIC_TARGET).join("wasm");
    Ok(SERVICES.iter().map(|(_, name)| folder.join(name)).collect())
}

fn packages() -> [String; 2] {
    SERVICES.map(|(_, name)| name.to_owned())
}
