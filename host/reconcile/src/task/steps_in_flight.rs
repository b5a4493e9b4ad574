//! Work in progress: steps, pulls and listings that have begun and not reported their end.

use std::collections::{BTreeMap, BTreeSet};

use model::{AppUuid, DesiredApp, EngineKind, ImageRef, ServiceKey, ServiceState};
use plan::{LockedWork, Subject};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Steps in progress, at most one per subject.
#[derive(Debug, Default)]
pub(super) struct StepsInFlight {
    /// The start time of each step, by subject.
    steps: BTreeMap<Subject, Instant>,
    /// The states of services that steps work on, for the status.
    pub service_states: BTreeMap<ServiceKey, ServiceState>,
    pulls: BTreeMap<ImageRef, CancellationToken>,
    /// Engines that are being listed: at most one listing per engine at a time.
    pub listings: BTreeSet<EngineKind>,
}

impl StepsInFlight {
    pub(super) fn begin(&mut self, subject: Subject) {
        self.steps.insert(subject, Instant::now());
    }

    /// Marks the locks of an app and its services as busy until each has reported.
    pub(super) fn begin_locked(&mut self, locked: &LockedWork) {
        self.begin(Subject::Locks(locked.app.clone()));
        for work in &locked.work {
            self.begin(Subject::Service(work.service.clone()));
        }
    }

    /// Returns the token that ends the pull early.
    pub(super) fn begin_pull(&mut self, image: &ImageRef) -> CancellationToken {
        let cancel = CancellationToken::new();
        self.pulls.insert(image.clone(), cancel.clone());
        cancel
    }

    /// Records that the step about `subject` has ended. Returns whether it was a pull.
    pub(super) fn end(&mut self, subject: &Subject) -> bool {
        self.steps.remove(subject);
        match subject {
            Subject::Image(image) => self.pulls.remove(image).is_some(),
            Subject::Service(service) => {
                self.service_states.remove(service);
                false
            }
            _ => false,
        }
    }

    pub(super) fn cancel_pulls(&self, is_unwanted: impl Fn(&ImageRef) -> bool) {
        for (image, cancel) in &self.pulls {
            if is_unwanted(image) {
                cancel.cancel();
            }
        }
    }

    pub(super) fn contains(&self, subject: &Subject) -> bool {
        self.steps.contains_key(subject)
    }

    pub(super) fn any(&self, matches: impl Fn(&Subject) -> bool) -> bool {
        self.steps.keys().any(matches)
    }

    /// Returns whether locks of an app are being taken, or one of its services is being changed.
    pub(super) fn changes_app(&self, app: &AppUuid) -> bool {
        self.any(|subject| match subject {
            Subject::Locks(locked) => locked == app,
            Subject::Service(service) => service.app == *app,
            _ => false,
        })
    }

    /// Returns whether an image of an app is being pulled or removed.
    pub(super) fn changes_image_of(&self, app: &DesiredApp) -> bool {
        self.any(|subject| {
            let mut services = app.services.values();
            matches!(subject, Subject::Image(image) if services.any(|it| it.config.image == *image))
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    pub(super) fn subjects(&self) -> BTreeSet<Subject> {
        self.steps.keys().cloned().collect()
    }

    /// Returns the step that has taken longest. Pulls do not count: their duration depends on the network.
    pub(super) fn oldest_step(&self) -> Option<(Subject, Instant)> {
        let steps = self.steps.iter();
        steps
            .filter(|(subject, _)| !matches!(subject, Subject::Image(_)))
            .min_by_key(|(_, since)| **since)
            .map(|(subject, since)| (subject.clone(), *since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(name: &str) -> ImageRef {
        name.parse().unwrap()
    }

    #[test]
    fn only_unwanted_pulls_are_cancelled_and_the_end_of_a_removal_is_no_pulls() {
        let mut in_flight = StepsInFlight::default();
        let (web, data) = (image("web:1"), image("data:1"));
        let of_web = in_flight.begin_pull(&web);
        let of_data = in_flight.begin_pull(&data);
        in_flight.cancel_pulls(|image| *image == web);
        assert!(of_web.is_cancelled() && !of_data.is_cancelled());
        assert!(in_flight.end(&Subject::Image(web.clone())));
        in_flight.begin(Subject::Image(web.clone()));
        assert!(!in_flight.end(&Subject::Image(web)));
    }

    #[test]
    fn a_service_shows_no_state_of_a_step_that_has_ended() {
        let mut in_flight = StepsInFlight::default();
        let service = ServiceKey {
            app: "0123456789abcdef0123456789abcdef".parse().unwrap(),
            service: "web".parse().unwrap(),
        };
        let subject = Subject::Service(service.clone());
        in_flight.begin(subject.clone());
        in_flight
            .service_states
            .insert(service, ServiceState::Starting);
        assert!(in_flight.contains(&subject));
        in_flight.end(&subject);
        assert!(in_flight.is_empty() && in_flight.service_states.is_empty());
    }

    #[test]
    fn a_pull_is_never_the_oldest_step() {
        let mut in_flight = StepsInFlight::default();
        in_flight.begin(Subject::Image(image("web:1")));
        assert_eq!(in_flight.oldest_step(), None);
        in_flight.begin(Subject::Reboot);
        let oldest = in_flight.oldest_step();
        assert!(matches!(oldest, Some((Subject::Reboot, _))));
    }
}
