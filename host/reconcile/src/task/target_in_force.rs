//! The target that the device follows, and the state that is only valid while it is in force.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    AppUuid, DesiredApp, DesiredHost, DesiredNetwork, DesiredService, DesiredState, EngineKind,
    ImageRef, Settings,
};
use plan::{CurrentState, ReplacedKeys};

use crate::messages::ActiveTarget;
use crate::release_trials::ReleaseTrials;

pub(super) struct TargetInForce {
    /// `None` if no target was ever set, or it cannot be read: then nothing is touched.
    pub desired: Option<DesiredState>,
    pub settings: Settings,
    /// The target after local mode, while that is being left.
    pub resumes: Option<ActiveTarget>,
    /// Services that have replaced their API keys since the last update.
    pub replaced_keys: ReplacedKeys,
    /// The engines that registries have reported for images since the target was set.
    pub image_kinds: BTreeMap<ImageRef, EngineKind>,
    /// Whether locks are overridden until the target is reached.
    pub force: bool,
    /// The releases that are on trial, were healthy, or were not.
    pub trials: ReleaseTrials,
    api_network: DesiredNetwork,
    /// Images that were pulled since the target was set, each until it turns out to be missing.
    pulled: BTreeSet<ImageRef>,
    pub has_downloaded: bool,
    /// Whether it was logged, if deltas were requested, that there are none.
    is_delta_noted: bool,
}

impl TargetInForce {
    pub(super) fn new(
        target: Option<ActiveTarget>,
        resumes: Option<ActiveTarget>,
        api_network: DesiredNetwork,
        trials: ReleaseTrials,
    ) -> Self {
        let (desired, settings) = match target {
            Some(target) => (Some(target.desired), target.settings),
            None => (None, Settings::default()),
        };
        TargetInForce {
            desired,
            settings,
            resumes,
            replaced_keys: ReplacedKeys::default(),
            image_kinds: BTreeMap::new(),
            force: false,
            trials,
            api_network,
            pulled: BTreeSet::new(),
            has_downloaded: false,
            is_delta_noted: false,
        }
    }

    /// Puts another target in force, or the same one again, and forgets the state of the previous one.
    pub(super) fn replace(&mut self, desired: DesiredState, settings: Settings) {
        self.desired = Some(desired);
        self.settings = settings;
        self.replaced_keys.clear();
        self.image_kinds.clear();
        self.pulled.clear();
        self.has_downloaded = false;
    }

    /// Ends whatever applied only until the target was reached.
    pub(super) fn reached(&mut self) {
        self.has_downloaded = false;
        self.force = false;
    }

    /// Returns the desired configuration of the host.
    pub(super) fn host(&self) -> Option<&DesiredHost> {
        self.desired.as_ref()?.host.as_ref()
    }

    pub(super) fn apps(&self) -> impl Iterator<Item = &DesiredApp> {
        let desired = self.desired.iter();
        desired.flat_map(|desired| desired.apps.values())
    }

    pub(super) fn app(&self, app: &AppUuid) -> Option<&DesiredApp> {
        self.desired.as_ref()?.apps.get(app)
    }

    /// Returns whether users' locks are overridden for every purpose.
    pub(super) fn overrides_locks(&self) -> bool {
        self.force || self.settings.override_locks
    }

    /// Gives services the API keys of another resolution of the same target. `in_use` are the digests from which existing
    /// containers were created: what runs with an old key is not updated because of the new one.
    pub(super) fn take_new_keys(&mut self, with_keys: &DesiredState, in_use: &BTreeSet<String>) {
        let Some(desired) = &mut self.desired else {
            return;
        };
        let services = desired.apps.values_mut();
        for service in services.flat_map(|app| app.services.values_mut()) {
            let next = with_keys.apps.get(&service.key.app);
            let next = next.and_then(|app| app.services.get(&service.key.service));
            let Some(next) = next.filter(|next| next.digest != service.digest) else {
                continue;
            };
            self.replaced_keys
                .note(service.key.clone(), service.digest.clone(), in_use);
            service.clone_from(next);
        }
    }

    /// Gives the services of an app that is restored their current API keys, in the `variables` that have them: the keys
    /// they were created with are no longer valid.
    pub(super) fn give_new_keys(&self, restored: &mut DesiredApp, variables: &[String]) {
        let Some(target) = self.app(&restored.uuid) else {
            return;
        };
        for service in restored.services.values_mut() {
            let Some(desired) = target.services.get(&service.key.service) else {
                continue;
            };
            if self.replaced_keys.contain(&service.key, &service.digest) {
                // Nothing else differs, so the next update finds it as desired.
                *service = DesiredService {
                    image_id: service.image_id,
                    release: service.release,
                    commit: service.commit.clone(),
                    ..desired.clone()
                };
                continue;
            }
            for variable in variables {
                let value = service.config.environment.get_mut(variable);
                if let (Some(value), Some(key)) = (value, desired.config.environment.get(variable))
                {
                    value.clone_from(key);
                }
            }
        }
    }

    pub(super) fn image_pulled(&mut self, image: ImageRef) {
        self.has_downloaded = true;
        self.pulled.insert(image);
    }

    /// Returns whether an image to be pulled was pulled already, and the engine does not have it. Returns `true` only
    /// once.
    pub(super) fn lost_pulled_image(&mut self, image: &ImageRef) -> bool {
        self.pulled.remove(image)
    }

    /// Returns whether to log that this device downloads full images. This is due only once.
    pub(super) fn note_deltas(&mut self) -> bool {
        self.settings.delta && !std::mem::replace(&mut self.is_delta_noted, true)
    }

    /// Copies the planner's inputs other than the target itself.
    pub(super) fn describe(&self, current: &mut CurrentState) {
        current.image_kinds.clone_from(&self.image_kinds);
        current.api_network = Some(self.api_network.clone());
        current.replaced_keys.clone_from(&self.replaced_keys);
        current.kept_images = self.trials.images_to_keep();
    }
}

#[cfg(test)]
mod tests {
    use model::NetworkConfig;

    use super::*;

    fn target() -> TargetInForce {
        let api_network = DesiredNetwork {
            engine_name: "api".to_owned(),
            config: NetworkConfig::default(),
            digest: "api".to_owned(),
        };
        TargetInForce::new(None, None, api_network, ReleaseTrials::default())
    }

    #[test]
    fn a_new_target_begins_without_what_was_learned_under_the_last_one_and_force_stays() {
        let mut target = target();
        let image: ImageRef = "web:1".parse().unwrap();
        target.force = true;
        target.image_pulled(image.clone());
        target.image_kinds.insert(image.clone(), EngineKind::Docker);
        target.replace(DesiredState::default(), Settings::default());
        assert!(!target.has_downloaded && !target.lost_pulled_image(&image));
        assert!(target.image_kinds.is_empty());
        assert!(target.overrides_locks());
    }

    #[test]
    fn force_lasts_until_the_target_is_reached_and_the_setting_for_longer() {
        let mut target = target();
        target.force = true;
        target.image_pulled("web:1".parse().unwrap());
        target.reached();
        assert!(!target.overrides_locks());
        assert!(!target.has_downloaded);
        target.settings.override_locks = true;
        target.reached();
        assert!(target.overrides_locks());
    }

    #[test]
    fn a_pulled_image_that_the_engine_lacks_is_lost_once() {
        let mut target = target();
        let image: ImageRef = "web:1".parse().unwrap();
        target.image_pulled(image.clone());
        assert!(target.lost_pulled_image(&image));
        assert!(!target.lost_pulled_image(&image));
    }

    #[test]
    fn that_there_are_no_deltas_is_noted_once_and_only_if_deltas_are_requested() {
        let mut target = target();
        assert!(!target.note_deltas());
        target.settings.delta = true;
        assert!(target.note_deltas());
        assert!(!target.note_deltas());
    }
}
