//! When an old container may go: the update strategies (device behaviour 5.4).

use model::{DesiredService, UpdateStrategy};

use crate::app::App;
use crate::components::ComponentState;
use crate::{Reason, placement::Placement};

/// How an old container makes way for the new one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Replacement {
    /// Kill the old one; start the new one as soon as it can be.
    KillThenStart,
    /// Not yet.
    Wait(Reason),
}

/// What may be done now with the old container of `service`. Asked only when the images of the app
/// allow for steps that disturb.
///
/// `kill-then-download`, `delete-then-download` and `hand-over` are updated as `download-then-kill`
/// is, which keeps every promise of theirs but disk space and overlap. Each gets its own arm here (and
/// its own exception from the wait for images, [`needs_image_first`]) without a change elsewhere.
pub(crate) fn replace(app: &App<'_>, service: &DesiredService) -> Replacement {
    match service.strategy {
        UpdateStrategy::DownloadThenKill
        | UpdateStrategy::KillThenDownload
        | UpdateStrategy::DeleteThenDownload
        | UpdateStrategy::HandOver => download_then_kill(app, service),
    }
}

/// Whether the image of `service` must be there before anything of the app is disturbed.
pub(crate) fn needs_image_first(service: &DesiredService) -> bool {
    match service.strategy {
        UpdateStrategy::DownloadThenKill
        | UpdateStrategy::KillThenDownload
        | UpdateStrategy::DeleteThenDownload
        | UpdateStrategy::HandOver => true,
    }
}

fn download_then_kill(app: &App<'_>, service: &DesiredService) -> Replacement {
    let image = match app.placement(service) {
        Placement::Ready(image) => image,
        Placement::Missing(_) => {
            return Replacement::Wait(Reason::Image(service.config.image.clone()));
        }
        Placement::Unavailable(reason) => return Replacement::Wait(reason.clone()),
    };
    // What can be made without a kill is made before it, so that a network that cannot be made costs
    // no running service.
    for (name, state) in app.components_of(service, image.engine) {
        if state == ComponentState::Absent {
            return Replacement::Wait(Reason::Component(name.to_owned()));
        }
    }
    Replacement::KillThenStart
}
