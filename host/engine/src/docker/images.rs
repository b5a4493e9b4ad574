//! Images: the list, pulls with progress, and the removal of references.

use async_trait::async_trait;
use bollard::auth::DockerCredentials;
use bollard::errors::Error;
use bollard::query_parameters::{CreateImageOptions, ListImagesOptions, RemoveImageOptions};
use futures::StreamExt;
use model::{EngineKind, Image, ImageRef};
use tokio::time::{Instant, timeout_at};

use super::Docker;
use super::connect::{is_not_found, refusal};
use super::pull_progress::LayerProgress;
use crate::registry::check_reference;
use crate::{EngineError, Images, PullProgress, RegistryAuth};

#[async_trait]
impl Images for Docker {
    async fn images(&self) -> Result<Vec<Image>, EngineError> {
        let api = self.api().await?;
        let answer = api.list_images(None::<ListImagesOptions>).await;
        let summaries = answer.map_err(|error| self.failed("list the images", error))?;
        Ok(summaries
            .iter()
            .filter_map(|image| {
                image_from_docker(&image.id, &image.repo_tags, &image.repo_digests, image.size)
            })
            .collect())
    }

    async fn pull_image(
        &self,
        reference: &ImageRef,
        auth: Option<&RegistryAuth>,
        progress: &(dyn Fn(PullProgress) + Send + Sync),
    ) -> Result<Image, EngineError> {
        check_reference(reference)?;
        if let Some(image) = self.find_image(reference).await? {
            progress(PullProgress { percent: 100 });
            return Ok(image);
        }
        self.check_room(reference, auth).await?;
        let options = CreateImageOptions {
            from_image: Some(reference.to_string()),
            ..Default::default()
        };
        let credentials = auth.map(|auth| DockerCredentials {
            username: Some(auth.user.clone()),
            password: Some(auth.password.clone()),
            ..Default::default()
        });
        let api = self.api().await?;
        // Dropping the stream closes the connection, which makes the engine abandon the pull.
        let mut messages = Box::pin(api.create_image(Some(options), None, credentials));
        let mut layers = LayerProgress::default();
        let mut reported = None;
        let mut deadline = Instant::now() + self.pull_patience;
        loop {
            let message = match timeout_at(deadline, messages.next()).await {
                Ok(Some(message)) => message.map_err(|error| self.pull_failed(reference, error))?,
                Ok(None) => break,
                Err(_) => return Err(self.pull_stalled(reference)),
            };
            if layers.note(&message) {
                deadline = Instant::now() + self.pull_patience;
            }
            let percent = layers.percent();
            if reported.is_none_or(|reported| percent > reported) {
                reported = Some(percent);
                progress(PullProgress { percent });
            }
        }
        let image = self.find_image(reference).await?.ok_or_else(|| {
            EngineError::failed(
                format!("pull `{reference}`"),
                "the engine ended the pull without the image",
            )
        })?;
        progress(PullProgress { percent: 100 });
        Ok(image)
    }

    async fn remove_image(&self, reference: &ImageRef) -> Result<(), EngineError> {
        check_reference(reference)?;
        let api = self.api().await?;
        let removed = api.remove_image(reference.as_str(), None::<RemoveImageOptions>, None);
        match removed.await {
            Ok(_) => Ok(()),
            Err(error) => match refusal(&error) {
                Some((404, _)) => Ok(()),
                Some((409, _)) => Err(EngineError::in_use(format!("the image `{reference}`"))),
                _ => Err(self.failed(format!("remove `{reference}`"), error)),
            },
        }
    }
}

impl Docker {
    /// Returns the image with this reference; `None` if there is none.
    async fn find_image(&self, reference: &ImageRef) -> Result<Option<Image>, EngineError> {
        let details = match self.api().await?.inspect_image(reference.as_str()).await {
            Ok(details) => details,
            Err(error) if is_not_found(&error) => return Ok(None),
            Err(error) => {
                return Err(self.failed(format!("look for `{reference}`"), error));
            }
        };
        let tags = details.repo_tags.unwrap_or_default();
        let digests = details.repo_digests.unwrap_or_default();
        let id = details.id.unwrap_or_default();
        let mut image = image_from_docker(&id, &tags, &digests, details.size.unwrap_or_default());
        if let Some(image) = &mut image
            && !image.references.contains(reference)
        {
            image.references.push(reference.clone());
        }
        Ok(image)
    }

    /// Creates the error for a stalled pull. The engine itself waits for a silent registry for as long as the
    /// connection lasts.
    fn pull_stalled(&self, reference: &ImageRef) -> EngineError {
        EngineError::failed(
            format!("pull `{reference}`"),
            format!(
                "its registry has sent nothing for {} s",
                self.pull_patience.as_secs_f32()
            ),
        )
    }

    /// Tells the causes apart by the messages of registries and of the engine; there are no codes
    /// for them.
    fn pull_failed(&self, reference: &ImageRef, error: Error) -> EngineError {
        let message = match &error {
            Error::DockerResponseServerError { message, .. } => message.as_str(),
            Error::DockerStreamError { error } => error.as_str(),
            _ => "",
        };
        let any = |words: &[&str]| words.iter().any(|word| message.contains(word));
        if any(&["vnd.wasm", "application/wasm"]) {
            return EngineError::WrongKind {
                image: reference.to_string(),
                engine: EngineKind::Docker,
                reason: "it is a WebAssembly component".into(),
            };
        }
        if any(&[
            "no matching manifest",
            "does not match the specified platform",
        ]) {
            return EngineError::Invalid(format!(
                "`{reference}` has no build for this device's architecture"
            ));
        }
        if is_not_found(&error) || any(&["manifest unknown", "not found: manifest", "name unknown"])
        {
            return EngineError::not_found(format!(
                "the image `{reference}` (or the registry wants other credentials)"
            ));
        }
        self.failed(format!("pull `{reference}`"), error)
    }
}

fn image_from_docker(id: &str, tags: &[String], digests: &[String], size: i64) -> Option<Image> {
    let names = tags.iter().chain(digests);
    let names = names.filter(|name| !name.starts_with("<none>"));
    Some(Image {
        engine: EngineKind::Docker,
        id: id.parse().ok()?,
        references: names.flat_map(|name| spellings(name)).collect(),
        size: u64::try_from(size).unwrap_or_default(),
    })
}

/// Returns all spellings of a reference, which the engine shows in its shortest form:
/// `busybox:latest` is `docker.io/library/busybox:latest` too.
fn spellings(shortest: &str) -> Vec<ImageRef> {
    let mut all = vec![shortest.to_owned()];
    match shortest.split_once('/') {
        None => {
            all.push(format!("library/{shortest}"));
            all.push(format!("docker.io/{shortest}"));
            all.push(format!("docker.io/library/{shortest}"));
        }
        Some((host, _)) if !host.contains(['.', ':']) && host != "localhost" => {
            all.push(format!("docker.io/{shortest}"));
        }
        Some(_) => {}
    }
    all.iter().filter_map(|name| name.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_known_by_every_way_to_write_its_name() {
        for (shown, all) in [
            (
                "busybox:1",
                "busybox:1 library/busybox:1 docker.io/busybox:1 docker.io/library/busybox:1",
            ),
            ("a/b:1", "a/b:1 docker.io/a/b:1"),
            ("r.io/b:1", "r.io/b:1"),
            ("localhost/b:1", "localhost/b:1"),
            ("127.0.0.1:5000/b@sha256:ab", "127.0.0.1:5000/b@sha256:ab"),
        ] {
            let found: Vec<_> = spellings(shown).iter().map(ToString::to_string).collect();
            assert_eq!(found.join(" "), all);
        }
    }
}
