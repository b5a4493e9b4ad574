//! When an old container may be removed: the update strategies (docs/spec/device.md#update-strategies).

use device_types::plan::Blocker;
use model::{DesiredService, UpdateStrategy};

use crate::app::App;
use crate::component_state::ComponentState;
use crate::placement::Placement;
use crate::services::{Disposition, ServicePlan};

/// How an old container makes way for the new one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Replacement {
    /// Kill the old one; start the new one as soon as possible.
    KillThenStart,
    /// Like `KillThenStart`, but the old one's image is removed before the new one is pulled.
    DeleteThenStart,
    /// Start the new one next to the old one, which is killed when the new one has taken over.
    HandOver,
    /// Not yet.
    Wait(Blocker),
}

/// Returns what may be done now with the old container of `service`. Called only if the images of the app allow steps
/// that disturb this service.
pub(crate) fn replace(app: &App<'_>, service: &DesiredService) -> Replacement {
    let placement = app.placement(service);
    let comes_later = matches!(placement, Placement::Missing(_));
    let image = match (service.strategy, placement.image(service)) {
        (_, Ok(image)) => image,
        (UpdateStrategy::KillThenDownload, Err(_)) if comes_later => {
            return Replacement::KillThenStart;
        }
        (UpdateStrategy::DeleteThenDownload, Err(_)) if comes_later => {
            return Replacement::DeleteThenStart;
        }
        (_, Err(reason)) => return Replacement::Wait(reason),
    };
    // Whatever can be created without a kill is created first, so that a network that cannot be created stops no
    // running service.
    for (name, state) in app.components_of(service, image.engine) {
        if state == ComponentState::Absent {
            return Replacement::Wait(Blocker::Component {
                name: name.to_owned(),
            });
        }
    }
    match service.strategy {
        // A service that starts only after a reboot cannot take over before it.
        UpdateStrategy::HandOver if !app.remakes_components() && !service.requires_reboot => {
            Replacement::HandOver
        }
        _ => Replacement::KillThenStart,
    }
}

/// Returns whether the old container is removed before the new image is pulled: until it is gone, its app pulls
/// nothing.
pub(crate) fn goes_first(app: &App<'_>, planned: &ServicePlan<'_>) -> bool {
    let early = matches!(
        planned.desired.strategy,
        UpdateStrategy::KillThenDownload | UpdateStrategy::DeleteThenDownload
    );
    early
        && matches!(planned.disposition, Disposition::Replace(..))
        && matches!(app.placement(planned.desired), Placement::Missing(_))
}

/// Returns whether the image of `service` must be present before anything of the app is disturbed.
pub(crate) fn needs_image_first(service: &DesiredService) -> bool {
    match service.strategy {
        UpdateStrategy::DownloadThenKill | UpdateStrategy::HandOver => true,
        UpdateStrategy::KillThenDownload | UpdateStrategy::DeleteThenDownload => false,
    }
}
