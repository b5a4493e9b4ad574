//! One app, as it is and as it should be: what all rules about apps read.

use std::collections::BTreeMap;

use device_types::plan::StepReason;
use model::{AppId, AppUuid, CurrentService, DesiredApp, DesiredService, ServiceName};

use crate::current::CurrentState;
use crate::placement::{Placement, place};

/// One app, as it is and as it should be.
pub(crate) struct App<'a> {
    pub current: &'a CurrentState,
    pub uuid: &'a AppUuid,
    /// `None` if the app must be removed.
    pub desired: Option<&'a DesiredApp>,
    pub containers: Vec<&'a CurrentService>,
    placements: BTreeMap<&'a ServiceName, Placement<'a>>,
}

impl<'a> App<'a> {
    pub(crate) fn look(
        current: &'a CurrentState,
        uuid: &'a AppUuid,
        desired: Option<&'a DesiredApp>,
    ) -> Self {
        let containers = current.services.iter();
        let services = desired.iter().flat_map(|app| app.services.values());
        App {
            current,
            uuid,
            desired,
            containers: containers.filter(|c| c.key.app == *uuid).collect(),
            placements: services
                .map(|service| (&service.key.service, place(current, service)))
                .collect(),
        }
    }

    /// Returns the placement of `service`, which belongs to this app.
    pub(crate) fn placement(&self, service: &DesiredService) -> &Placement<'a> {
        const NOWHERE: &Placement<'_> = &Placement::Missing(None);
        self.placements.get(&service.key.service).unwrap_or(NOWHERE)
    }

    /// Returns the reason for removing parts of the app that the target does not contain.
    pub(crate) fn removal_reason(&self) -> StepReason {
        if self.current.purged.contains(self.uuid) {
            StepReason::Purge
        } else {
            StepReason::NotInTarget
        }
    }

    pub(crate) fn id(&self) -> Option<AppId> {
        let current = self.containers.first().map(|container| container.app_id);
        self.desired.map(|app| app.id).or(current)
    }
}
