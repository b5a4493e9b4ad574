//! The targets of a device, one from each source, and which of them is in force: the source for callers' queries, and
//! for the target after local mode.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{
    AppClass, AppId, AppUuid, DesiredHost, DesiredState, ServiceName, Settings, TargetState,
};

use crate::messages::ActiveTarget;
use crate::persistence::LocalMode;
use crate::target::{self, AcceptedTarget};

/// The last accepted targets, and the state of local mode.
#[derive(Debug)]
pub(crate) struct Targets {
    pub mode: LocalMode,
    pub local: Option<AcceptedTarget>,
    pub cloud: Option<AcceptedTarget>,
}

/// The effect of a new target of the cloud on the mode. The cloud changes the mode only when its variable changes, so
/// the last statement counts, whether local or from the cloud (docs/spec/device.md#local-mode-last-word).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModeTransition {
    Stays,
    Enters,
    Leaves,
}

impl Targets {
    /// Returns whether the device is in local mode. While it is leaving the mode, it accepts no more local targets.
    pub(crate) fn local_mode(&self) -> bool {
        self.mode == LocalMode::On
    }

    /// Returns the target that the device follows; in local mode, until a target has been posted, that is the cloud's,
    /// for its name and its variables.
    pub(crate) fn in_force(&self) -> Option<&Arc<TargetState>> {
        let local = self.local.as_ref().filter(|_| self.local_mode());
        let accepted = local.or(self.cloud.as_ref())?;
        Some(&accepted.target)
    }

    /// Returns the target in local mode: the local target, and the cloud's non-fleet apps
    /// (docs/spec/device.md#local-mode).
    pub(crate) fn target_in_local_mode(&self) -> ActiveTarget {
        let local = self.local.as_ref();
        let mut desired =
            local.map_or_else(DesiredState::default, |local| (*local.desired).clone());
        // The names of volumes and lock folders contain the number, so two apps cannot share it.
        let local_ids: BTreeSet<_> = desired.apps.values().map(|app| app.id).collect();
        for (uuid, app) in self.kept_of_the_cloud() {
            if !local_ids.contains(&app.id) {
                let entry = desired.apps.entry(uuid.clone());
                entry.or_insert_with(|| app.clone());
            }
        }
        let target = self.in_force();
        desired.host = target.map(|target| DesiredHost::from_variables(&target.config));
        ActiveTarget {
            desired,
            settings: Settings::from_variables(&self.variables()),
            target: target.cloned(),
        }
    }

    /// Returns the target outside local mode; `None` if the cloud has not sent one yet.
    pub(crate) fn target_of_the_cloud(&self) -> Option<ActiveTarget> {
        self.cloud.as_ref().map(|cloud| ActiveTarget {
            target: Some(Arc::clone(&cloud.target)),
            desired: (*cloud.desired).clone(),
            settings: Settings::from_variables(&cloud.target.config),
        })
    }

    /// Returns the apps of the cloud's target, whether it is in force or not.
    pub(crate) fn apps_of_the_cloud(&self) -> Vec<(AppId, AppUuid)> {
        let cloud = self.cloud.iter();
        let apps = cloud.flat_map(|cloud| cloud.desired.apps.values());
        apps.map(|app| (app.id, app.uuid.clone())).collect()
    }

    /// Returns the services in any target, whether it is in force or not.
    pub(crate) fn services(&self) -> impl Iterator<Item = (AppId, ServiceName)> {
        let accepted = self.local.iter().chain(&self.cloud);
        let apps = accepted.flat_map(|accepted| accepted.target.apps.values());
        apps.flat_map(|app| {
            let releases = app.release.iter();
            let names = releases.flat_map(|release| release.services.keys());
            names.map(|name| (app.id, name.clone()))
        })
    }

    fn kept_of_the_cloud(&self) -> impl Iterator<Item = (&AppUuid, &model::DesiredApp)> {
        self.cloud.iter().flat_map(|cloud| {
            cloud.desired.apps.iter().filter(|(uuid, _)| {
                let app = cloud.target.apps.get(*uuid);
                app.is_some_and(|app| app.class != AppClass::Fleet)
            })
        })
    }

    /// Returns the effect on the mode of accepting `next` from the cloud.
    pub(crate) fn turn(&self, next: &TargetState) -> ModeTransition {
        let wants = target::wants_local_mode(next);
        let cloud = self.cloud.as_ref();
        let before = cloud.map(|cloud| target::wants_local_mode(&cloud.target));
        if before == Some(wants) || wants == self.local_mode() {
            ModeTransition::Stays
        } else if wants {
            ModeTransition::Enters
        } else {
            ModeTransition::Leaves
        }
    }

    /// Returns the variables in force.
    pub(crate) fn variables(&self) -> BTreeMap<String, String> {
        let target = self.in_force();
        target.map_or_else(BTreeMap::new, |target| target.config.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saying(local_mode: Option<&str>) -> TargetState {
        let value = local_mode.map(|value| ("SUPERVISOR_LOCAL_MODE".to_owned(), value.to_owned()));
        TargetState {
            config: value.into_iter().collect(),
            ..TargetState::default()
        }
    }

    #[test]
    fn the_cloud_changes_the_mode_where_its_word_changes() {
        use LocalMode::{Off, On};
        for (mode, before, next, turn) in [
            (Off, None, Some("true"), ModeTransition::Enters),
            (Off, None, None, ModeTransition::Stays),
            (On, None, None, ModeTransition::Leaves),
            (On, None, Some("1"), ModeTransition::Stays),
            (Off, Some(None), Some("on"), ModeTransition::Enters),
            (On, Some(Some("1")), Some("0"), ModeTransition::Leaves),
            // The key is missing: its default is false.
            (On, Some(Some("1")), None, ModeTransition::Leaves),
            // It was left locally, and the cloud repeats its previous value.
            (Off, Some(Some("1")), Some("true"), ModeTransition::Stays),
            // It was entered locally.
            (On, Some(None), Some("false"), ModeTransition::Stays),
            (On, Some(Some("0")), Some("1"), ModeTransition::Stays),
        ] {
            let cloud = before.map(|before: Option<&str>| AcceptedTarget {
                target: Arc::new(saying(before)),
                desired: Arc::default(),
            });
            let targets = Targets {
                mode,
                local: None,
                cloud,
            };
            assert_eq!(
                targets.turn(&saying(next)),
                turn,
                "{mode:?} {before:?} {next:?}"
            );
        }
    }
}
