//! What is about to happen and what holds it up, for whoever asks: what the loop knows is copied, and
//! foreseen ([`plan::forecast()`]) on the caller's side. Nothing is changed by asking.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use model::{AppId, AppUuid, DesiredState, EngineKind, ImageRef, ServiceName};
use plan::{CurrentState, Deed, Foreseen, Reason, Subject, forecast};

use crate::Locks;

/// What is to be done until the target is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outlook {
    /// What the device is at.
    pub mood: Mood,
    /// The device is in local mode.
    pub local_mode: bool,
    /// In order; those of one stage may be taken side by side.
    pub steps: Vec<OutlookStep>,
    /// What no step leads to.
    pub unplanned: Vec<Unplanned>,
    /// There is more than fits.
    pub cut_short: bool,
}

/// What the device is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    /// Nothing is left to do.
    Settled,
    /// There is something to do.
    Applying,
    /// The engines have not been asked what they hold.
    Looking,
    /// It has no target.
    NoTarget,
    /// Local mode is being left; after that there is a target again.
    LeavingLocalMode,
}

/// One step to come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutlookStep {
    /// The step itself.
    pub step: Foreseen,
    /// The number of its app, where it is of one.
    pub app_id: Option<AppId>,
    /// Percent, of a pull in flight.
    pub progress: Option<u8>,
    /// Empty where it is in flight or can be taken now.
    pub blocked_by: Vec<Blocker>,
}

/// Something that is left as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Unplanned {
    /// Whose it is; missing for what concerns the device.
    pub app: Option<(AppId, AppUuid)>,
    /// The service, where it is one.
    pub service: Option<ServiceName>,
    /// Why.
    pub blocked_by: Option<Blocker>,
}

/// Why something is not done now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blocker {
    /// An image that is not there yet.
    Image(ImageRef),
    /// A service of the same app that must have been started before.
    Service(ServiceName),
    /// A volume or network that is to be made or made anew before, by its engine name.
    Component(String),
    /// The engine is still removing an old container.
    Removal,
    /// Steps before it, of which none is named.
    EarlierSteps,
    /// It failed, and is tried again at a time.
    BackOff {
        /// Milliseconds since the epoch.
        until_ms: i64,
        /// How often it failed in a row.
        failures: u32,
        /// What went wrong the last time.
        reason: String,
    },
    /// A user holds the update lock of a service of the app.
    Lock {
        /// The app.
        app: AppId,
        /// The service that is locked.
        service: ServiceName,
        /// The file.
        path: PathBuf,
    },
    /// The engine does not answer.
    Silent(EngineKind, String),
    /// This device does not have the engine.
    NoEngine(EngineKind),
    /// The host is about to go down.
    GoingDown,
    /// It is started after the next reboot.
    Reboot,
    /// The device was rebooted for its target and did not reach it.
    RebootedInVain {
        /// How often.
        times: u32,
        /// What for.
        what: String,
    },
    /// The app is the host's or the supervisor's own.
    NotOurs,
    /// The release was refused.
    Rejected,
    /// The device is in local mode, and this is the cloud's.
    LocalMode,
    /// It was stopped over the API, and is started over it.
    StoppedByUser,
}

/// What the loop knows at one moment.
pub(crate) struct Sight {
    pub mood: Mood,
    pub current: CurrentState,
    pub desired: DesiredState,
    /// What failed and waits, by subject.
    pub failing: BTreeMap<Subject, Waiting>,
    /// Apps whose users' locks are overridden.
    pub overridden: BTreeSet<AppUuid>,
    pub going_down: bool,
    pub progress: BTreeMap<ImageRef, u8>,
}

/// Something that failed and waits to be tried again.
pub(crate) struct Waiting {
    pub until_ms: i64,
    pub failures: u32,
    pub reason: String,
}

impl Waiting {
    fn blocker(&self) -> Blocker {
        Blocker::BackOff {
            until_ms: self.until_ms,
            failures: self.failures,
            reason: self.reason.clone(),
        }
    }
}

impl Sight {
    /// Foresees what comes; looks at the lock files, so it is for a blocking thread. `of_the_cloud` are the
    /// apps that the cloud's target has.
    pub(crate) fn outlook(self, locks: &Locks, of_the_cloud: &[(AppId, AppUuid)]) -> Outlook {
        let foreseen = match self.mood {
            Mood::Settled | Mood::Applying => forecast(&self.current, &self.desired),
            Mood::Looking | Mood::NoTarget | Mood::LeavingLocalMode => plan::Forecast::default(),
        };
        let mut user_locks: BTreeMap<&AppUuid, Vec<Blocker>> = BTreeMap::new();
        for (app, (id, services)) in &foreseen.locked {
            if !self.overridden.contains(app) {
                let held = locks.of_users(*id, services);
                let held = held.into_iter().map(|(service, path)| Blocker::Lock {
                    app: *id,
                    service,
                    path,
                });
                user_locks.insert(app, held.collect());
            }
        }
        let steps = foreseen.steps.iter().map(|step| {
            let mut blocked_by = Vec::new();
            if !step.in_flight {
                let held = match &step.deed {
                    Deed::Free(plan::Step::Reboot { .. }) => self.locks_of_all(locks),
                    _ => step
                        .app
                        .as_ref()
                        .and_then(|app| user_locks.get(app).cloned())
                        .unwrap_or_default(),
                };
                blocked_by = self.blockers(step, &held);
            }
            OutlookStep {
                app_id: step.app.as_ref().and_then(|app| self.app_id(app)),
                progress: self.progress_of(step),
                blocked_by,
                step: step.clone(),
            }
        });
        let steps: Vec<_> = steps.collect();
        let mut unplanned = self.left_alone(of_the_cloud);
        let stuck = foreseen.stuck.iter().map(|waiting| {
            let app = match &waiting.subject {
                Subject::Service(service) => Some(&service.app),
                Subject::App(app) | Subject::Locks(app) => Some(app),
                _ => None,
            };
            Unplanned {
                app: app.and_then(|app| Some((self.app_id(app)?, app.clone()))),
                service: match &waiting.subject {
                    Subject::Service(service) => Some(service.service.clone()),
                    _ => None,
                },
                blocked_by: Some(match self.failing.get(&waiting.subject) {
                    Some(failed) => failed.blocker(),
                    None => blocker(&waiting.reason),
                }),
            }
        });
        unplanned.extend(stuck);
        let settled = steps.is_empty() && foreseen.stuck.is_empty() && self.current.busy.is_empty();
        Outlook {
            mood: match self.mood {
                Mood::Settled if !settled => Mood::Applying,
                mood => mood,
            },
            local_mode: self.current.local_mode,
            steps,
            unplanned,
            cut_short: foreseen.cut_short,
        }
    }

    fn blockers(&self, step: &Foreseen, user_locks: &[Blocker]) -> Vec<Blocker> {
        let mut blockers: Vec<Blocker> = step.waits_for.iter().map(blocker).collect();
        if let Deed::Free(plan::Step::Reboot { .. }) = &step.deed {
            blockers.extend(user_locks.iter().cloned());
        }
        if let Deed::Locked(service, _) = &step.deed {
            blockers.extend(user_locks.iter().cloned());
            let locks = Subject::Locks(service.app.clone());
            blockers.extend(self.failing.get(&locks).map(Waiting::blocker));
        }
        blockers.extend(self.failing.get(&step.subject()).map(Waiting::blocker));
        if step.stage > 1 && blockers.is_empty() {
            blockers.push(Blocker::EarlierSteps);
        }
        if self.going_down {
            blockers.push(Blocker::GoingDown);
        }
        blockers
    }

    /// The locks that users hold of any app: a reboot needs them all.
    fn locks_of_all(&self, locks: &Locks) -> Vec<Blocker> {
        let mut apps: BTreeMap<(AppId, &AppUuid), BTreeSet<ServiceName>> = BTreeMap::new();
        for held in &self.current.services {
            let services = apps.entry((held.app_id, &held.key.app)).or_default();
            services.insert(held.key.service.clone());
        }
        let apps = apps
            .into_iter()
            .filter(|((_, uuid), _)| !self.overridden.contains(*uuid));
        let held = apps.flat_map(|((app, _), services)| {
            let held = locks.of_users(app, &services).into_iter();
            held.map(move |(service, path)| Blocker::Lock { app, service, path })
        });
        held.collect()
    }

    fn progress_of(&self, step: &Foreseen) -> Option<u8> {
        match &step.deed {
            Deed::Free(plan::Step::PullImage { image, .. }) => self.progress.get(image).copied(),
            _ => None,
        }
    }

    fn app_id(&self, app: &AppUuid) -> Option<AppId> {
        let desired = self.desired.apps.get(app).map(|app| app.id);
        let mut services = self.current.services.iter();
        desired.or_else(|| Some(services.find(|held| held.key.app == *app)?.app_id))
    }

    fn left_alone(&self, of_the_cloud: &[(AppId, AppUuid)]) -> Vec<Unplanned> {
        let mut left = Vec::new();
        for app in self.desired.apps.values() {
            let why = match (app.not_ours, app.rejected) {
                (true, _) => Blocker::NotOurs,
                (_, true) => Blocker::Rejected,
                _ => continue,
            };
            left.push(Unplanned {
                app: Some((app.id, app.uuid.clone())),
                service: None,
                blocked_by: Some(why),
            });
        }
        if self.current.local_mode {
            let hidden = of_the_cloud
                .iter()
                .filter(|(_, uuid)| !self.desired.apps.contains_key(uuid));
            left.extend(hidden.map(|app| Unplanned {
                app: Some(app.clone()),
                service: None,
                blocked_by: Some(Blocker::LocalMode),
            }));
        }
        for held in &self.current.services {
            if self.current.held.contains(&held.container) {
                left.push(Unplanned {
                    app: Some((held.app_id, held.key.app.clone())),
                    service: Some(held.key.service.clone()),
                    blocked_by: Some(Blocker::StoppedByUser),
                });
            }
        }
        left
    }
}

fn blocker(reason: &Reason) -> Blocker {
    match reason {
        Reason::Image(image) => Blocker::Image(image.clone()),
        Reason::NoEngine(kind) => Blocker::NoEngine(*kind),
        Reason::Silent(kind, why) => Blocker::Silent(*kind, why.clone()),
        Reason::Service(service) => Blocker::Service(service.clone()),
        Reason::Component(name) => Blocker::Component(name.clone()),
        Reason::Removing => Blocker::Removal,
        Reason::Reboot => Blocker::Reboot,
        Reason::RebootedInVain(times, what) => Blocker::RebootedInVain {
            times: *times,
            what: what.clone(),
        },
        // Failures are left out of a forecast; should one come, it is said.
        Reason::Failed(reason) => Blocker::BackOff {
            until_ms: crate::clock::now_ms(),
            failures: 1,
            reason: reason.clone(),
        },
    }
}
