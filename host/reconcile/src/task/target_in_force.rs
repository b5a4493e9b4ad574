//! The target that the device follows, and the state that is only valid while it is in force.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    AppUuid, DesiredApp, DesiredHost, DesiredNetwork, DesiredService, DesiredState, EngineKind,
    ImageRef, Settings,
};
use plan::{CurrentState, ReplacedKeys};
use tokio::time::Instant;

use crate::messages::ActiveTarget;
use crate::release_trials::{AppObservation, ReleaseTrials, TrialRules, TrialStep};

pub(super) struct TargetInForce {
    /// `None` if no target was ever set, or it cannot be read: then nothing is touched.
    desired: Option<DesiredState>,
    pub settings: Settings,
    /// The target after local mode, while that is being left.
    resumes: Option<ActiveTarget>,
    /// Services that have replaced their API keys since the last update.
    pub replaced_keys: ReplacedKeys,
    /// The engines that registries have reported for images since the target was set.
    image_kinds: BTreeMap<ImageRef, EngineKind>,
    /// Whether locks are overridden until the target is reached.
    force: bool,
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

    /// Puts no target in force while local mode is being left; `resumes` follows after that.
    pub(super) fn suspend(&mut self, resumes: Option<ActiveTarget>) {
        self.resumes = resumes;
        self.desired = None;
    }

    /// Replaces the target that follows after local mode.
    pub(super) fn resume_with(&mut self, target: ActiveTarget) {
        self.resumes = Some(target);
    }

    /// Returns the target that follows after local mode, once.
    pub(super) fn resume(&mut self) -> Option<ActiveTarget> {
        self.resumes.take()
    }

    /// Puts an empty target in force, as when local mode begins. The settings stay.
    pub(super) fn set_empty(&mut self) {
        self.desired = Some(DesiredState::default());
    }

    /// Overrides users' locks until the target is reached.
    pub(super) fn begin_force(&mut self) {
        self.force = true;
    }

    /// Respects users' locks again, unless the settings override them.
    pub(super) fn end_force(&mut self) {
        self.force = false;
    }

    pub(super) fn is_forced(&self) -> bool {
        self.force
    }

    /// Begins an update of the services that keep running with an old API key.
    pub(super) fn begin_update(&mut self) {
        self.replaced_keys.clear();
    }

    /// Records which engine runs an image, as its registry reports.
    pub(super) fn set_image_kind(&mut self, image: ImageRef, kind: EngineKind) {
        self.image_kinds.insert(image, kind);
    }

    /// Lets registries be queried again for the engines of all images.
    pub(super) fn forget_image_kinds(&mut self) {
        self.image_kinds.clear();
    }

    /// Examines the releases of these apps of the target. Returns what follows, each with its app.
    pub(super) fn look_at_releases(
        &mut self,
        observations: &BTreeMap<AppUuid, AppObservation>,
        rules: Option<TrialRules>,
        now: Instant,
    ) -> Vec<(DesiredApp, TrialStep)> {
        let Some(desired) = &self.desired else {
            return Vec::new();
        };
        self.trials.retain(desired);
        let apps = desired.apps.values();
        let steps = apps.filter_map(|app| {
            let seen = observations.get(&app.uuid)?;
            let step = self.trials.look(app, seen, rules, now)?;
            Some((app.clone(), step))
        });
        steps.collect()
    }

    /// Puts the last healthy release of an app into the target, if its own was rejected. Returns whether it did.
    pub(super) fn go_back(&mut self, app: &AppUuid, secret_variables: &[String]) -> bool {
        let Some(desired) = &mut self.desired else {
            return false;
        };
        self.trials.go_back(app, desired, secret_variables)
    }

    /// Puts the releases that were rejected into the target again. Returns whether there were any.
    pub(super) fn try_releases_again(&mut self) -> bool {
        let Some(desired) = &mut self.desired else {
            return false;
        };
        self.trials.try_again(desired)
    }

    /// Ends whatever applied only until the target was reached.
    pub(super) fn reached(&mut self) {
        self.has_downloaded = false;
        self.force = false;
    }

    /// Returns what is desired; `None` if no target was ever set, it cannot be read, or local mode is being left.
    pub(super) fn desired(&self) -> Option<&DesiredState> {
        self.desired.as_ref()
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
mod tests;
