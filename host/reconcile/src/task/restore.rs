//! The current state of an app, written as a target: the basis for actions while an update of the app is pending
//! (docs/spec/device.md#actions). Otherwise they would wait for images that are still being downloaded, and after a
//! restart or a purge nothing would run meanwhile.

use std::borrow::Cow;
use std::collections::BTreeMap;

use model::{
    AppUuid, ContainerState, CurrentService, DesiredApp, DesiredHost, DesiredState, ServiceName,
    Verb,
};

use super::ReconcilerTask;
use crate::actions::OngoingAction;

impl ReconcilerTask {
    /// Returns the target, but with the apps that an action restores in their previous state.
    pub(super) fn effective_target(&self) -> Option<Cow<'_, DesiredState>> {
        let mut desired = Cow::Borrowed(self.target.desired()?);
        for OngoingAction { app, state, .. } in self.actions.current() {
            // An app that is no longer in the target is removed, whatever the action.
            if let Some(restores) = &state.restores
                && desired.apps.contains_key(app)
            {
                let mut restored = (**restores).clone();
                self.target
                    .give_new_keys(&mut restored, &self.context.branding.secret_variables());
                desired.to_mut().apps.insert(app.clone(), restored);
            }
        }
        // In local mode every service may set a target (docs/spec/device.md#os-update-variables).
        if self.local_mode.is_on()
            && let Some(host) = &desired.host
            && host.os.is_some()
        {
            let host = DesiredHost {
                os: None,
                ..host.clone()
            };
            desired.to_mut().host = Some(host);
        }
        Some(desired)
    }

    /// Returns one app of [`Self::effective_target`].
    pub(super) fn effective_app(&self, app: &AppUuid) -> Option<&DesiredApp> {
        let desired = self.target.app(app)?;
        Some(self.actions.restored_app(app).unwrap_or(desired))
    }

    /// Returns the current state of the app, if its target differs and `verb` does not wait for that. Also returns
    /// `None` if the definition of a part of it is unknown: then it is brought to its target.
    pub(super) fn as_it_is(&self, app: &AppUuid, verb: &Verb) -> Option<DesiredApp> {
        let target = self.target.app(app)?;
        let current = newest(self.view.services_of(app));
        let is_reached = current.len() == target.services.len()
            && target.services.values().all(|desired| {
                let service = current.get(&desired.key.service);
                service.is_some_and(|service| {
                    service.digest.as_deref() == Some(desired.digest.as_str())
                        || self.target.replaced_keys.concerns(service)
                })
            });
        if is_reached || current.is_empty() {
            return None;
        }
        match verb {
            Verb::Restart(None) | Verb::Purge | Verb::Stop(_) => {}
            // A single service is recreated, or started, according to the target; but not if that would wait for a
            // download.
            Verb::Restart(Some(_)) | Verb::Start(_) if !self.view.has_images_of(target) => {}
            Verb::Restart(Some(_)) | Verb::Start(_) => return None,
        }
        let services = current.into_values();
        let as_it_is = self.stored.read_app(target, services, &self.view.current());
        if as_it_is.is_none() {
            tracing::info!(
                %app,
                "the store lacks the definition of some services, volumes or networks of app `{app}`, so the app is restored as its target describes it"
            );
        }
        as_it_is
    }

    /// Forgets the definitions of objects that are gone. Called while the device is idle.
    pub(super) fn forget_definitions(&mut self) {
        let Some(needed) = self.view.definitions() else {
            return;
        };
        let unused = self.stored.definitions.take_others(&needed);
        if !unused.is_empty() {
            // Remaining ones are checked again at the next start.
            self.context
                .write_later("delete unused definitions", move |store| {
                    store.forget_definitions(&unused)
                });
        }
    }
}

/// Returns the current container of each service: the newest that is not being removed.
fn newest(services: Vec<CurrentService>) -> BTreeMap<ServiceName, CurrentService> {
    let mut newest: BTreeMap<ServiceName, CurrentService> = BTreeMap::new();
    for service in services {
        if matches!(
            service.state,
            ContainerState::Dead | ContainerState::Removing
        ) {
            continue;
        }
        let other = newest.get(&service.key.service);
        if other.is_none_or(|other| other.created_at_ms <= service.created_at_ms) {
            newest.insert(service.key.service.clone(), service);
        }
    }
    newest
}
