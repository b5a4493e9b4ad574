//! Which engine a service runs on, and whether its image is there. The kind of an image is an observed
//! fact, so a service is placed by its image alone.

use device_types::plan::Blocker;
use model::{DesiredService, EngineKind, Image, ImageRef};

use crate::{CurrentState, Subject};

/// Where a service is to run, according to its image.
#[derive(Debug, Clone)]
pub(crate) enum Placement<'a> {
    /// The image is available.
    Ready(&'a Image),
    /// The image must be pulled; `None` if the registry must tell which engine runs it.
    Missing(Option<EngineKind>),
    /// The image cannot be pulled now.
    Unavailable(Blocker),
}

impl<'a> Placement<'a> {
    /// The image of `service`, which is placed here, or why there is none.
    pub(crate) fn image(&self, service: &DesiredService) -> Result<&'a Image, Blocker> {
        match self {
            Placement::Ready(image) => Ok(*image),
            Placement::Missing(_) => Err(Blocker::Image {
                image: service.config.image.clone(),
            }),
            Placement::Unavailable(reason) => Err(reason.clone()),
        }
    }

    /// The engine, as far as it is known and usable.
    pub(crate) fn engine(&self) -> Option<EngineKind> {
        match self {
            Placement::Ready(image) => Some(image.engine),
            Placement::Missing(engine) => *engine,
            Placement::Unavailable(_) => None,
        }
    }
}

pub(crate) fn place<'a>(current: &'a CurrentState, service: &DesiredService) -> Placement<'a> {
    let target = &service.config.image;
    let kind = kind_of(current, target);
    if let Some(engine) = kind {
        if !current.engines.contains_key(&engine) {
            return Placement::Unavailable(Blocker::EngineMissing { engine });
        }
        let mut silent = current.silent_engines();
        if let Some((_, reason)) = silent.find(|(silent, _)| *silent == engine) {
            return Placement::Unavailable(reason);
        }
    }
    let mut holders: Vec<&Image> = current
        .images
        .iter()
        .filter(|image| kind.is_none_or(|kind| kind == image.engine) && names(image, target))
        .collect();
    holders.sort_by_key(|image| Some(image.engine) != current.default_engine);
    if let Some(image) = holders.first() {
        // A step about an image that is there removes it: it was not wanted a moment ago.
        if current.is_busy(&Subject::Image(target.clone())) {
            return Placement::Missing(Some(image.engine));
        }
        return Placement::Ready(image);
    }
    // It may be on an engine that is silent, its container with it: making it elsewhere would run it twice.
    if kind.is_none()
        && let Some((_, reason)) = current.silent_engines().next()
    {
        return Placement::Unavailable(reason);
    }
    Placement::Missing(kind)
}

/// The kind of `image`, if it is known without a look at the engines' images.
fn kind_of(current: &CurrentState, image: &ImageRef) -> Option<EngineKind> {
    if image.is_file() {
        return Some(EngineKind::Wasm);
    }
    let mut engines = current.engines.keys();
    match (engines.next(), engines.next()) {
        (Some(only), None) => Some(*only),
        _ => current.image_kinds.get(image).copied(),
    }
}

/// Whether two references name the same image: an engine may list one in a shorter form.
#[must_use]
pub fn is_same_image(one: &ImageRef, other: &ImageRef) -> bool {
    familiar(one.as_str()) == familiar(other.as_str())
}

/// Whether `wanted` is one of the references of `image`.
#[must_use]
pub fn names(image: &Image, wanted: &ImageRef) -> bool {
    image
        .references
        .iter()
        .any(|reference| is_same_image(reference, wanted))
}

/// A reference as Docker lists it: its own registry's name, and `library/` there, are left out.
pub(crate) fn familiar(reference: &str) -> &str {
    for registry in ["docker.io/", "index.docker.io/"] {
        if let Some(name) = reference.strip_prefix(registry) {
            return name.strip_prefix("library/").unwrap_or(name);
        }
    }
    reference
}
