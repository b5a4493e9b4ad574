//! The current state of an app, written as a target: the basis for actions while an update of the app is pending
//! (docs/spec/device.md#actions). Otherwise they would wait for images that are still being downloaded, and after a
//! restart or a purge nothing would run meanwhile.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use strum::VariantArray;

use model::{
    AppUuid, ContainerState, CurrentService, DesiredApp, DesiredHost, DesiredObject,
    DesiredService, DesiredState, ServiceName, Verb,
};
use plan::ComponentKind;
use serde::de::DeserializeOwned;

use super::ReconcilerTask;
use crate::actions::OngoingAction;
use crate::definitions::{component_subject, service_subject};

impl ReconcilerTask {
    /// Returns the target, but with the apps that an action restores in their previous state.
    pub(super) fn wanted_now(&self) -> Option<Cow<'_, DesiredState>> {
        let mut desired = Cow::Borrowed(self.target.desired.as_ref()?);
        for OngoingAction { app, state, .. } in self.actions.current() {
            // An app that is no longer in the target is removed, whatever the action.
            if let Some(restores) = &state.restores
                && desired.apps.contains_key(app)
            {
                let mut restored = (**restores).clone();
                self.give_new_keys(&mut restored);
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

    /// Returns one app of [`Self::wanted_now`].
    pub(super) fn app_wanted_now(&self, app: &AppUuid) -> Option<&DesiredApp> {
        let desired = self.target.app(app)?;
        let underway = self.actions.of(app);
        let restores = underway.and_then(|it| it.state.restores.as_deref());
        Some(restores.unwrap_or(desired))
    }

    /// Returns the current state of the app, if its target differs and `verb` does not wait for that. Also returns
    /// `None` if the definition of a part of it is unknown: then it is brought to its target.
    pub(super) fn as_it_is(&self, app: &AppUuid, verb: &Verb) -> Option<DesiredApp> {
        let target = self.target.app(app)?;
        let current = newest(self.services_of(app));
        let is_reached = current.len() == target.services.len()
            && target.services.values().all(|desired| {
                let service = current.get(&desired.key.service);
                service.is_some_and(|service| {
                    service.digest.as_deref() == Some(desired.digest.as_str())
                        || self.target.replaced_keys.concern(service)
                })
            });
        if is_reached || current.is_empty() {
            return None;
        }
        match verb {
            Verb::Restart(None) | Verb::Purge | Verb::Stop(_) => {}
            // A single service is recreated, or started, according to the target; but not if that would wait for a
            // download.
            Verb::Restart(Some(_)) | Verb::Start(_) if !self.has_images_of(target) => {}
            Verb::Restart(Some(_)) | Verb::Start(_) => return None,
        }
        let as_it_is = self.read_app(target, current);
        if as_it_is.is_none() {
            tracing::info!(
                %app,
                "it is not known from what all parts of app `{app}` were created: the app is restored as its target describes it"
            );
        }
        as_it_is
    }

    fn read_app(
        &self,
        target: &DesiredApp,
        current: BTreeMap<ServiceName, CurrentService>,
    ) -> Option<DesiredApp> {
        let services = current.into_values().map(|service| {
            let service = self.read_service(target, service)?;
            Some((service.key.service.clone(), service))
        });
        Some(DesiredApp {
            commit: self.stored.commits.get(&target.uuid).cloned(),
            services: services.collect::<Option<_>>()?,
            volumes: self.read_components(target, ComponentKind::Volume, &target.volumes)?,
            networks: self.read_components(target, ComponentKind::Network, &target.networks)?,
            ..target.clone()
        })
    }

    fn read_service(&self, target: &DesiredApp, current: CurrentService) -> Option<DesiredService> {
        let digest = current.digest?;
        let release = current.release?;
        let same = target.services.get(&current.key.service);
        let same = same.filter(|desired| desired.digest == digest).cloned();
        let subject = service_subject(&current.key);
        let made: DesiredService =
            same.or_else(|| self.stored.definitions.get(subject, &digest))?;
        Some(DesiredService {
            key: current.key,
            app_id: current.app_id,
            id: current.id,
            // A later release may have given it another name.
            image_id: release.image_id,
            release: release.id,
            commit: release.commit?,
            ..made
        })
    }

    /// Returns the definitions of the volumes, or the networks, of an app, by their names at the engine.
    fn read_components<C: Clone + DeserializeOwned>(
        &self,
        target: &DesiredApp,
        kind: ComponentKind,
        desired: &BTreeMap<String, DesiredObject<C>>,
    ) -> Option<BTreeMap<String, DesiredObject<C>>> {
        let current = self.view.current();
        let components = current.components(kind).iter();
        let ours = components.filter(|component| component.app.as_ref() == Some(&target.uuid));
        let definitions = ours.map(|component| {
            let (name, digest) = (&component.name, component.digest.as_ref()?);
            let mut objects = desired.values();
            let same = objects.find(|it| it.engine_name == *name && it.digest == *digest);
            let subject = component_subject(kind, name);
            let stored = || self.stored.definitions.get(subject, digest);
            Some((name.clone(), same.cloned().or_else(stored)?))
        });
        definitions.collect()
    }

    /// Returns whether every image of the app is on an engine.
    fn has_images_of(&self, app: &DesiredApp) -> bool {
        let mut services = app.services.values();
        services.all(|service| {
            let mut images = self.view.images();
            images.any(|image| plan::names(image, &service.config.image))
        })
    }

    /// Forgets the definitions of objects that are gone. Called while the device is idle.
    pub(super) fn forget_definitions(&mut self) {
        let current = self.view.current();
        if !current.all_answer() {
            return;
        }
        let services = self
            .view
            .services()
            .filter_map(|service| Some((service_subject(&service.key), service.digest?)));
        let mut needed: BTreeSet<(String, String)> = services.collect();
        for &kind in ComponentKind::VARIANTS {
            let components = current.components(kind).iter();
            needed.extend(components.filter_map(|component| {
                let subject = component_subject(kind, &component.name);
                Some((subject, component.digest.clone()?))
            }));
        }
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
