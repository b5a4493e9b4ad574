//! An app as it is now, written as a target: what actions work on while an update of the app is pending
//! (docs/spec/device.md#actions). Without it they would wait for images that are still downloaded, a restart and a
//! purge with nothing running meanwhile.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{
    AppUuid, ContainerState, CurrentService, DesiredApp, DesiredNetwork, DesiredService,
    DesiredState, DesiredVolume, ServiceKey, ServiceName, Verb,
};
use plan::CurrentComponent;

use super::ReconcilerTask;
use crate::definitions::{network_subject, service_subject, volume_subject};

impl ReconcilerTask {
    /// The target, but with the apps as they were that an action brings back.
    pub(super) fn wanted_now(&self) -> Option<Cow<'_, DesiredState>> {
        let mut wanted = Cow::Borrowed(self.target.desired.as_ref()?);
        for underway in self.actions.current() {
            let app = &underway.action.app;
            // One that the target has no more goes, whatever was asked for.
            if let Some(restores) = &underway.restores
                && wanted.apps.contains_key(app)
            {
                let mut restored = (**restores).clone();
                self.give_new_keys(&mut restored);
                wanted.to_mut().apps.insert(app.clone(), restored);
            }
        }
        Some(wanted)
    }

    /// One app of [`Self::wanted_now`].
    pub(super) fn app_wanted_now(&self, app: &AppUuid) -> Option<&DesiredApp> {
        let wanted = self.target.app(app)?;
        let restores = self.actions.of(app).and_then(|u| u.restores.as_deref());
        Some(restores.unwrap_or(wanted))
    }

    /// The app as it is, where its target is another and `verb` does not wait for that. `None` also where
    /// it is not known what something of it was made from: then it is brought to its target.
    pub(super) fn as_it_is(&self, app: &AppUuid, verb: &Verb) -> Option<DesiredApp> {
        let target = self.target.app(app)?;
        let current = newest(self.services_of(app));
        let is_reached = current.len() == target.services.len()
            && target.services.values().all(|wanted| {
                let found = current.get(&wanted.key.service);
                found.is_some_and(|found| {
                    found.digest.as_deref() == Some(wanted.digest.as_str())
                        || self.target.replaced_keys.concern(found)
                })
            });
        if is_reached || current.is_empty() {
            return None;
        }
        match verb {
            Verb::Restart(None) | Verb::Purge | Verb::Stop(_) => {}
            // A single service is made anew, or started, as the target has it; but that does not wait for a
            // download.
            Verb::Restart(Some(_)) | Verb::Start(_) if !self.has_images_of(target) => {}
            Verb::Restart(Some(_)) | Verb::Start(_) => return None,
        }
        let found = self.read_app(target, current);
        if found.is_none() {
            tracing::info!(
                %app,
                "it is not known what all of app `{app}` was made from: it comes back as its target has it"
            );
        }
        found
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
        let held = self.view.current();
        let ours = |component: &&CurrentComponent| component.app.as_ref() == Some(&target.uuid);
        let volumes = held.volumes.iter().filter(ours).map(|found| {
            let volume = self.read_volume(target, found)?;
            Some((volume.engine_name.clone(), volume))
        });
        let networks = held.networks.iter().filter(ours).map(|found| {
            let network = self.read_network(target, found)?;
            Some((network.engine_name.clone(), network))
        });
        Some(DesiredApp {
            commit: self.stored.commits.get(&target.uuid).cloned(),
            services: services.collect::<Option<_>>()?,
            volumes: volumes.collect::<Option<_>>()?,
            networks: networks.collect::<Option<_>>()?,
            ..target.clone()
        })
    }

    fn read_service(&self, target: &DesiredApp, current: CurrentService) -> Option<DesiredService> {
        let digest = current.digest?;
        let release = current.release?;
        let same = target.services.get(&current.key.service);
        let same = same.filter(|wanted| wanted.digest == digest).cloned();
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

    fn read_volume(&self, target: &DesiredApp, found: &CurrentComponent) -> Option<DesiredVolume> {
        let digest = found.digest.as_ref()?;
        let mut wanted = target.volumes.values();
        let same = wanted.find(|v| v.engine_name == found.name && v.digest == *digest);
        let known = || {
            self.stored
                .definitions
                .get(volume_subject(&found.name), digest)
        };
        same.cloned().or_else(known)
    }

    fn read_network(
        &self,
        target: &DesiredApp,
        found: &CurrentComponent,
    ) -> Option<DesiredNetwork> {
        let digest = found.digest.as_ref()?;
        let mut wanted = target.networks.values();
        let same = wanted.find(|n| n.engine_name == found.name && n.digest == *digest);
        let known = || {
            self.stored
                .definitions
                .get(network_subject(&found.name), digest)
        };
        same.cloned().or_else(known)
    }

    /// Whether every image of the app is on an engine.
    fn has_images_of(&self, app: &DesiredApp) -> bool {
        let mut services = app.services.values();
        services.all(|service| {
            let mut images = self.view.engines.values().flat_map(|view| &view.images);
            images.any(|image| plan::names(image, &service.config.image))
        })
    }

    /// Forgets what things were made from that are gone. For a device at rest.
    pub(super) fn forget_definitions(&mut self) {
        let held = self.view.current();
        if !held.all_answer() {
            return;
        }
        let services = self.view.services().filter_map(|service| {
            let key = ServiceKey::clone(&service.key);
            Some((service_subject(&key), service.digest?))
        });
        let volumes = held.volumes.into_iter();
        let volumes = volumes.filter_map(|v| Some((volume_subject(&v.name), v.digest?)));
        let networks = held.networks.into_iter();
        let networks = networks.filter_map(|n| Some((network_subject(&n.name), n.digest?)));
        let needed: BTreeSet<(String, String)> = services.chain(volumes).chain(networks).collect();
        let gone = self.stored.definitions.take_others(&needed);
        if gone.is_empty() {
            return;
        }
        let context = Arc::clone(&self.context);
        tokio::spawn(async move {
            // What stays is looked at again at the next start.
            if let Err(why) = context.journal.forget_definitions(gone).await {
                tracing::warn!("failed to delete unused definitions: {why}");
            }
        });
    }
}

/// The container of each service that counts: the newest that is not on its way out.
fn newest(services: Vec<CurrentService>) -> BTreeMap<ServiceName, CurrentService> {
    let mut newest: BTreeMap<ServiceName, CurrentService> = BTreeMap::new();
    for service in services {
        if matches!(
            service.state,
            ContainerState::Dead | ContainerState::Removing
        ) {
            continue;
        }
        let held = newest.get(&service.key.service);
        if held.is_none_or(|held| held.created_at_ms <= service.created_at_ms) {
            newest.insert(service.key.service.clone(), service);
        }
    }
    newest
}
