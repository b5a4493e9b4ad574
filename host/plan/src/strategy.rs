//! When an old container may go: the update strategies (docs/spec/device.md#update-strategies).

use device_types::plan::Blocker;
use model::{DesiredService, UpdateStrategy};

use crate::app::App;
use crate::components::ComponentState;
use crate::placement::Placement;
use crate::services::{Disposition, ServicePlan};

/// How an old container makes way for the new one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Replacement {
    /// Kill the old one; start the new one as soon as it can be.
    KillThenStart,
    /// As before, and the old one's image goes before the new one is pulled.
    DeleteThenStart,
    /// Start the new one beside the old one, which goes when the new one says so.
    HandOver,
    /// Not yet.
    Wait(Blocker),
}

/// What may be done now with the old container of `service`. Asked only when the images of the app
/// allow for steps that disturb this service.
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
    // What can be made without a kill is made before it, so that a network that cannot be made costs
    // no running service.
    for (name, state) in app.components_of(service, image.engine) {
        if state == ComponentState::Absent {
            return Replacement::Wait(Blocker::Component {
                name: name.to_owned(),
            });
        }
    }
    match service.strategy {
        // One that runs after a reboot takes nothing over before.
        UpdateStrategy::HandOver if !app.remakes_components() && !service.requires_reboot => {
            Replacement::HandOver
        }
        _ => Replacement::KillThenStart,
    }
}

/// Whether the old container goes before the new image comes: then its app pulls nothing before it is
/// gone.
pub(crate) fn goes_first(app: &App<'_>, planned: &ServicePlan<'_>) -> bool {
    let early = matches!(
        planned.desired.strategy,
        UpdateStrategy::KillThenDownload | UpdateStrategy::DeleteThenDownload
    );
    early
        && matches!(planned.disposition, Disposition::Replace(..))
        && matches!(app.placement(planned.desired), Placement::Missing(_))
}

/// Whether the image of `service` must be there before anything of the app is disturbed.
pub(crate) fn needs_image_first(service: &DesiredService) -> bool {
    match service.strategy {
        UpdateStrategy::DownloadThenKill | UpdateStrategy::HandOver => true,
        UpdateStrategy::KillThenDownload | UpdateStrategy::DeleteThenDownload => false,
    }
}
