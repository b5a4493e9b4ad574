//! Pulls, and the removal of images that nothing uses.

use std::collections::BTreeMap;

use model::{DesiredService, DesiredState, EngineKind, ImageRef};

use crate::current::CurrentState;
use crate::placement::{is_same_image, names, short_reference};
use crate::plan::Plan;
use crate::step::{ImageUser, Step};

/// The images to pull, each once, no matter how many services need it.
#[derive(Debug, Default)]
pub(crate) struct Pulls(BTreeMap<ImageRef, (Option<EngineKind>, Vec<ImageUser>)>);

impl Pulls {
    pub(crate) fn want(&mut self, engine: Option<EngineKind>, service: &DesiredService) {
        let image = service.config.image.clone();
        let (_, users) = self.0.entry(image).or_insert((engine, Vec::new()));
        users.push(ImageUser {
            app_id: service.app_id,
            service: service.key.clone(),
            image_id: service.image_id,
        });
    }

    pub(crate) fn into_plan(self, current: &CurrentState) -> Plan {
        let mut plan = Plan::default();
        for (image, (engine, users)) in self.0 {
            let pull = Step::PullImage {
                image,
                engine,
                users,
            };
            plan.push(current, pull);
        }
        plan
    }
}

/// Plans the removal of every image that the supervisor pulled, no container uses and no target names. Other images are
/// left alone, and in local mode all are (docs/spec/device.md#images).
pub(crate) fn remove_unused(current: &CurrentState, desired: &DesiredState, plan: &mut Plan) {
    // A container on an engine that does not answer may use the image.
    if current.local_mode || !current.all_answer() {
        return;
    }
    for image in &current.recorded_images {
        if is_wanted(desired, image) || is_kept(current, image) || is_used(current, image) {
            continue;
        }
        let holder = current.images.iter().find(|held| names(held, image));
        let removal = Step::RemoveImage {
            image: image.clone(),
            engine: holder.map(|held| held.engine),
        };
        plan.push(current, removal);
    }
}

fn is_wanted(desired: &DesiredState, image: &ImageRef) -> bool {
    desired
        .apps
        .values()
        .flat_map(|app| app.services.values())
        .any(|service| is_same_image(&service.config.image, image))
}

fn is_kept(current: &CurrentState, image: &ImageRef) -> bool {
    current
        .kept_images
        .iter()
        .any(|kept| is_same_image(kept, image))
}

fn is_used(current: &CurrentState, image: &ImageRef) -> bool {
    current.services.iter().any(|service| {
        short_reference(&service.image) == short_reference(image.as_str())
            || current
                .images
                .iter()
                .any(|held| held.id == service.engine_image && names(held, image))
    })
}
