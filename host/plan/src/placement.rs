//! Which engine a service runs on, and whether its image is present. The kind of an image is an observed fact, so the
//! placement of a service depends only on its image.

use device_types::plan::Blocker;
use model::{DesiredService, EngineKind, Image, ImageRef};

use crate::current::CurrentState;
use crate::subject::Subject;

/// Where a service runs, according to its image.
#[derive(Debug, Clone)]
pub(crate) enum Placement<'a> {
    /// The image is available.
    Ready(&'a Image),
    /// The image must be pulled; `None` if only the registry knows which engine runs it.
    Missing(Option<EngineKind>),
    /// The image cannot be pulled now.
    Unavailable(Blocker),
}

impl<'a> Placement<'a> {
    /// Returns the image of `service`, whose placement this is, or the reason why there is none.
    pub(crate) fn image(&self, service: &DesiredService) -> Result<&'a Image, Blocker> {
        match self {
            Placement::Ready(image) => Ok(*image),
            Placement::Missing(_) => Err(Blocker::Image {
                image: service.config.image.clone(),
            }),
            Placement::Unavailable(reason) => Err(reason.clone()),
        }
    }

    /// Returns the engine, if it is known and usable.
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
        // A step about an existing image removes it: a moment ago it was not needed.
        if current.is_busy(&Subject::Image(target.clone())) {
            return Placement::Missing(Some(image.engine));
        }
        return Placement::Ready(image);
    }
    // The image and its container may be on an engine that does not answer: a container elsewhere would be a second
    // one.
    if kind.is_none()
        && let Some((_, reason)) = current.silent_engines().next()
    {
        return Placement::Unavailable(reason);
    }
    Placement::Missing(kind)
}

/// Returns the kind of `image`, if it is known without listing the engines' images.
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

/// Returns whether two references name the same image: an engine may list one in a shorter form.
#[must_use]
pub fn is_same_image(one: &ImageRef, other: &ImageRef) -> bool {
    short_reference(one.as_str()) == short_reference(other.as_str())
}

/// Returns whether `image_ref` is one of the references of `image`.
#[must_use]
pub fn names(image: &Image, image_ref: &ImageRef) -> bool {
    image
        .references
        .iter()
        .any(|reference| is_same_image(reference, image_ref))
}

/// Returns a reference as Docker lists it: without the name of its own registry, and without `library/` there.
pub(crate) fn short_reference(reference: &str) -> &str {
    for registry in ["docker.io/", "index.docker.io/"] {
        if let Some(name) = reference.strip_prefix(registry) {
            return name.strip_prefix("library/").unwrap_or(name);
        }
    }
    reference
}
