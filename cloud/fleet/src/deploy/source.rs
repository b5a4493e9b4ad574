//! The current place of a service's image, which is checked before anything is created.

use registry_client::{Content, Image, Manifest};
use registry_protocol::{ImageName, RepositoryName, is_digest};

use super::component::Component;
use super::compose::{ImageSource, Service};
use super::platform::Platform;
use super::registry::Registries;
use crate::failure::{Failure, Result};

/// An image that can be copied.
pub(super) enum Source {
    /// In a registry.
    Remote {
        name: String,
        place: RepositoryName,
        /// The manifest of the release's image: an image, or an index of all of them.
        top: Manifest,
        /// The images of the index, if it is one.
        images: Vec<Manifest>,
    },
    /// In a file.
    File { name: String, component: Component },
}

/// Parses the name of an image as people write it.
fn named(text: &str) -> Result<ImageName> {
    let name = text.parse::<ImageName>().ok();
    let name = name.filter(|name| !name.reference.contains(':') || is_digest(&name.reference));
    name.ok_or_else(|| {
        Failure::usage(format!("`{text}` is not a name of an image"))
            .hint("write `registry.example.com/name:tag`; shell variables are not replaced")
    })
}

impl Source {
    /// Finds the image, for one platform or for all available ones.
    ///
    /// # Errors
    /// If it does not exist, or not for that platform.
    pub(super) async fn find(
        registries: &Registries<'_>,
        service: &Service,
        platform: Option<&Platform>,
    ) -> Result<Self> {
        let name = match &service.image {
            ImageSource::File(path) => {
                return Ok(Source::File {
                    name: path.display().to_string(),
                    component: Component::read(path)?,
                });
            }
            ImageSource::Named(name) => name,
        };
        let image = named(name)?;
        let repository = registries.other(&image.place);
        let mut top = repository.manifest(&image.reference).await?;
        let mut images = Vec::new();
        if let Content::Index(index) = &top.content {
            match platform {
                Some(platform) => {
                    let chosen = platform.choose(index)?.blob.digest.clone();
                    top = repository.manifest(&chosen).await?;
                }
                None => {
                    for listed in &index.manifests {
                        images.push(repository.manifest(&listed.blob.digest).await?);
                    }
                }
            }
        }
        Ok(Source::Remote {
            name: name.clone(),
            place: image.place,
            top,
            images,
        })
    }

    /// Returns its name for people.
    pub(super) fn name(&self) -> &str {
        match self {
            Source::Remote { name, .. } | Source::File { name, .. } => name,
        }
    }

    /// Returns the manifest that devices pull.
    pub(super) fn top(&self) -> &Manifest {
        match self {
            Source::Remote { top, .. } => top,
            Source::File { component, .. } => &component.artifact.manifest,
        }
    }

    /// Returns the images: itself, or those of the index.
    pub(super) fn images(&self) -> impl Iterator<Item = (&Manifest, &Image)> {
        let nested: &[Manifest] = match self {
            Source::Remote { images, .. } => images,
            Source::File { .. } => &[],
        };
        std::iter::once(self.top())
            .chain(nested)
            .filter_map(|manifest| match &manifest.content {
                Content::Image(image) => Some((manifest, image)),
                Content::Index(_) => None,
            })
    }

    /// Returns the size of all its blobs in bytes.
    pub(super) fn size(&self) -> u64 {
        self.images()
            .flat_map(|(_, image)| image.blobs())
            .map(|blob| blob.size)
            .fold(0, u64::saturating_add)
    }
}
