//! The set of engines that a device has.
//!
//! The reconciler holds one [`Engines`] and lists the objects of each engine directly. Only a pull
//! needs more, because only its registry knows the kind of an image that is not here yet.

use std::sync::Arc;

use model::{EngineKind, Image, ImageRef};

use crate::{Engine, EngineError, PullProgress, RegistryAuth, image_kind, registry};

/// The engines of one device, at most one of a kind. Cheap to clone.
#[derive(Clone)]
pub struct Engines {
    engines: Arc<[Arc<dyn Engine>]>,
    /// The registry at which the device has an account, and the account.
    account: Option<Arc<(String, RegistryAuth)>>,
}

impl Engines {
    /// Keeps the first engine of each kind. The first of all is the default.
    #[must_use]
    pub fn new(engines: Vec<Arc<dyn Engine>>) -> Self {
        let mut unique: Vec<Arc<dyn Engine>> = Vec::new();
        for engine in engines {
            if unique.iter().all(|other| other.kind() != engine.kind()) {
                unique.push(engine);
            }
        }
        Engines {
            engines: unique.into(),
            account: None,
        }
    }

    /// Returns the same engines with an account at one registry: `host`, with its port if it has
    /// one.
    #[must_use]
    pub fn with_account(self, host: impl Into<String>, account: RegistryAuth) -> Self {
        Engines {
            account: Some(Arc::new((host.into(), account))),
            ..self
        }
    }

    /// Returns the device's account at the registry of this image; it has one at a single registry. A registry tells
    /// its clients where to send their passwords, so no other registry gets this one.
    #[must_use]
    pub fn account_for(&self, image: &ImageRef) -> Option<&RegistryAuth> {
        let (host, account) = self.account.as_deref()?;
        registry::is_at(image, host).then_some(account)
    }

    /// Returns the engine of this kind, if the device has one.
    #[must_use]
    pub fn get(&self, kind: EngineKind) -> Option<&Arc<dyn Engine>> {
        self.engines.iter().find(|engine| engine.kind() == kind)
    }

    /// Returns every engine, the default one first.
    pub fn all(&self) -> impl Iterator<Item = &Arc<dyn Engine>> {
        self.engines.iter()
    }

    /// Returns the kind to use if nothing specifies one: for networks and volumes that no service
    /// uses yet. `None` for an empty set.
    #[must_use]
    pub fn default_kind(&self) -> Option<EngineKind> {
        self.engines.first().map(|engine| engine.kind())
    }

    /// Pulls `image` into the engine that runs its kind, unless it is there, and returns it. If an engine has an image
    /// with exactly this reference, it is returned without asking its registry. Dropping the future stops the transfer.
    ///
    /// # Errors
    /// As [`crate::Images::pull_image`]; [`EngineError::WrongKind`], with the reason, if no engine of this device runs
    /// images of its kind.
    pub async fn pull(
        &self,
        image: &ImageRef,
        auth: Option<&RegistryAuth>,
        progress: &(dyn Fn(PullProgress) + Send + Sync),
    ) -> Result<Image, EngineError> {
        if let Some(present) = self.find(image).await {
            progress(PullProgress { percent: 100 });
            return Ok(present);
        }
        let kind = self.kind_of(image, auth).await?;
        match self.get(kind) {
            Some(engine) => engine.pull_image(image, auth, progress).await,
            None => Err(self.no_engine_for(image, kind)),
        }
    }

    /// Returns the kind of an image that no engine holds. Asks the registry only if the answer
    /// makes a difference: registries limit requests.
    ///
    /// # Errors
    /// As [`crate::kind_of`], except if the registry does not answer us but Docker may be able to
    /// reach it.
    pub async fn kind_of(
        &self,
        image: &ImageRef,
        auth: Option<&RegistryAuth>,
    ) -> Result<EngineKind, EngineError> {
        if let [only] = &*self.engines
            && !image.is_file()
        {
            return Ok(only.kind());
        }
        match image_kind::ask(image, auth).await {
            // Docker may reach registries that we do not: it has its own mirrors, certificates and
            // exceptions.
            Err(EngineError::Failed { .. }) if self.get(EngineKind::Docker).is_some() => {
                Ok(EngineKind::Docker)
            }
            answer => answer,
        }
    }

    /// Returns the image that some engine holds by this reference. An engine that does not answer
    /// is skipped: if the pull turns out to need it, the pull will report that.
    async fn find(&self, image: &ImageRef) -> Option<Image> {
        for engine in self.all() {
            match engine.images().await {
                Ok(images) => {
                    if let Some(present) = images.into_iter().find(|i| i.references.contains(image))
                    {
                        return Some(present);
                    }
                }
                Err(error) => tracing::debug!(%error, %image, "failed to look for an image"),
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
