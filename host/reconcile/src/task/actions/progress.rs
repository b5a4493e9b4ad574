//! The progress of an action: whether it is done, and which failed steps belong to it.

use std::collections::BTreeSet;

use model::{
    ActionError, AppUuid, ContainerId, ContainerState, CurrentService, ServiceKey, ServiceName,
    Verb,
};
use plan::{Subject, has_component};

use crate::actions::{ActionPhase, OngoingAction};
use crate::task::ReconcilerTask;

impl ReconcilerTask {
    /// Returns whether nothing is left to do in the action's phase.
    pub(super) fn is_reached(&self, app: &AppUuid, underway: &OngoingAction) -> bool {
        let services = self.view.services_of(app);
        let idle = |service: &ServiceName| {
            let key = ServiceKey {
                app: app.clone(),
                service: service.clone(),
            };
            !self.in_flight.contains(&Subject::Service(key))
        };
        let state = &underway.state;
        let mut concerned = services
            .iter()
            .filter(|service| state.containers.contains(&service.container));
        match (&state.verb, state.phase) {
            (Verb::Stop(name), _) => idle(name) && concerned.all(|service| !service.runs()),
            (Verb::Start(name), _) => {
                let started = |service: &CurrentService| match service.state {
                    ContainerState::Created => false,
                    ContainerState::Exited => !self.stored.stopped.contains(&service.container),
                    _ => true,
                };
                idle(name) && concerned.all(started)
            }
            (_, ActionPhase::Clearing) => {
                let current = self.view.current();
                let mut left = current.volumes.iter().chain(&current.networks);
                current.all_answer()
                    && services.is_empty()
                    && left.all(|left| left.app.as_ref() != Some(app))
            }
            _ => {
                let made = |name: &ServiceName| self.is_made(app, name, &state.containers);
                let names = &state.services;
                concerned.next().is_none() && names.iter().all(|name| idle(name) && made(name))
            }
        }
    }

    /// Returns whether a service has a container that is not one of `old`, and that is started if
    /// it should be.
    fn is_made(&self, app: &AppUuid, name: &ServiceName, old: &BTreeSet<ContainerId>) -> bool {
        let desired = self.effective_app(app);
        let Some(desired_service) = desired.and_then(|app| app.services.get(name)) else {
            // The target no longer contains the service.
            return true;
        };
        self.view.services_of(app).iter().any(|service| {
            service.key.service == *name
                && !old.contains(&service.container)
                && !(desired_service.running && service.state == ContainerState::Created)
        })
    }

    /// Records a failed step as the failure of the action that needs it.
    pub(in crate::task) fn step_of_action_failed(&mut self, subject: &Subject, reason: &str) {
        for app in self.actions.apps() {
            let Some(underway) = self.actions.for_app(&app) else {
                continue;
            };
            if underway.disturbs()
                && underway.answer.is_some()
                && self.needs(&app, underway, subject)
            {
                let error = ActionError::Failed(reason.to_owned());
                self.end_action(&app, Err(error));
            }
        }
    }

    fn needs(&self, app: &AppUuid, underway: &OngoingAction, subject: &Subject) -> bool {
        let desired = self.effective_app(app);
        let state = &underway.state;
        match subject {
            Subject::Service(key) => key.app == *app && state.services.contains(&key.service),
            Subject::Component(kind, _, name) => {
                let current = self.view.current();
                let mut components = current.components(*kind).iter();
                let is_there = components.any(|c| c.name == *name && c.app.as_ref() == Some(app));
                let is_wanted = desired.is_some_and(|app| has_component(app, *kind, name));
                state.verb == Verb::Purge && (is_there || is_wanted)
            }
            Subject::Image(image) => desired.is_some_and(|app| {
                let mut names = state.services.iter();
                names.any(|name| {
                    let service = app.services.get(name);
                    service.is_some_and(|service| service.config.image == *image)
                })
            }),
            _ => false,
        }
    }
}
