//! The set of engines that a device has.
//!
//! The reconciler holds one [`Engines`] and asks each engine in it what it has; only a pull needs
//! more, since the kind of an image that is not here yet is known to its registry alone.

use std::sync::Arc;

use model::{EngineKind, Image, ImageRef};

use crate::{Engine, EngineError, PullProgress, RegistryAuth, image_kind};

/// The engines of one device, at most one of a kind. Cheap to clone.
#[derive(Clone)]
pub struct Engines(Arc<[Arc<dyn Engine>]>);

impl Engines {
    /// The first engine of each kind counts. The first of all is the default.
    #[must_use]
    pub fn new(engines: Vec<Arc<dyn Engine>>) -> Self {
        let mut kept: Vec<Arc<dyn Engine>> = Vec::new();
        for engine in engines {
            if kept.iter().all(|other| other.kind() != engine.kind()) {
                kept.push(engine);
            }
        }
        Engines(kept.into())
    }

    /// The engine of this kind, where the device has one.
    #[must_use]
    pub fn get(&self, kind: EngineKind) -> Option<&Arc<dyn Engine>> {
        self.0.iter().find(|engine| engine.kind() == kind)
    }

    /// Every engine, the default one first.
    pub fn all(&self) -> impl Iterator<Item = &Arc<dyn Engine>> {
        self.0.iter()
    }

    /// The kind that is meant where nothing says which: networks and volumes that no service uses
    /// yet. `None` for an empty set.
    #[must_use]
    pub fn default_kind(&self) -> Option<EngineKind> {
        self.0.first().map(|engine| engine.kind())
    }

    /// Makes sure that `image` is in the engine that runs its kind, and answers it there. An image
    /// that some engine has by exactly this reference is answered without asking its registry.
    /// Dropping the future stops the transfer.
    ///
    /// # Errors
    /// As [`Engine::pull_image`]; [`EngineError::WrongKind`], with the reason, where no engine of this
    /// device runs images of its kind.
    pub async fn pull(
        &self,
        image: &ImageRef,
        auth: Option<&RegistryAuth>,
        progress: &(dyn Fn(PullProgress) + Send + Sync),
    ) -> Result<Image, EngineError> {
        if let Some(found) = self.find(image).await {
            progress(PullProgress { percent: 100 });
            return Ok(found);
        }
        let kind = self.kind_of(image, auth).await?;
        match self.get(kind) {
            Some(engine) => engine.pull_image(image, auth, progress).await,
            None => Err(self.no_engine_for(image, kind)),
        }
    }

    /// The kind of an image that no engine holds. Asks the registry only where the answer makes a
    /// difference: registries count questions.
    ///
    /// # Errors
    /// As [`crate::kind_of`], but for a registry that does not answer us where Docker may reach it.
    pub async fn kind_of(
        &self,
        image: &ImageRef,
        auth: Option<&RegistryAuth>,
    ) -> Result<EngineKind, EngineError> {
        if let [only] = &*self.0
            && !image.is_file()
        {
            return Ok(only.kind());
        }
        match image_kind::ask(image, auth).await {
            // Docker may reach registries that we do not: it has mirrors, certificates and
            // exceptions of its own.
            Err(EngineError::Failed { .. }) if self.get(EngineKind::Docker).is_some() => {
                Ok(EngineKind::Docker)
            }
            answer => answer,
        }
    }

    /// The image that some engine holds by this reference. An engine that does not answer is passed
    /// over: the pull, if it turns out to be its, says so.
    async fn find(&self, image: &ImageRef) -> Option<Image> {
        for engine in self.all() {
            match engine.images().await {
                Ok(images) => {
                    if let Some(found) = images.into_iter().find(|i| i.references.contains(image)) {
                        return Some(found);
                    }
                }
                Err(error) => tracing::debug!(%error, "failed to look for `{image}`"),
            }
        }
        None
    }

    fn no_engine_for(&self, image: &ImageRef, kind: EngineKind) -> EngineError {
        let Some(engine) = self.default_kind() else {
            return EngineError::Invalid(format!("this device has no engine to run `{image}`"));
        };
        EngineError::WrongKind {
            image: image.to_string(),
            engine,
            reason: match kind {
                EngineKind::Docker => {
                    "it is a container image, and this device has no docker engine"
                }
                EngineKind::Wasm => {
                    "it is a WebAssembly component, and this device has no wasm engine"
                }
            }
            .into(),
        }
    }
}

#[cfg(test)]
mod tests;
