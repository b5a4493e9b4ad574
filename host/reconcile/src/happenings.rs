//! What the loop tells of as it happens: changes of what it publishes, and what holds it up.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::{
    AppId, AppStatus, AppUuid, Commit, ContainerId, DeviceStatus, ImageRef, ImageState,
    ReleaseState, ServiceName, ServiceState, ServiceStatus,
};
use plan::Subject;
use tokio::time::Instant;

/// Between two words on the progress of one download.
const EVERY: Duration = Duration::from_secs(1);

/// Something that has happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happening {
    /// The state of a service is another.
    Service {
        /// The app.
        app: AppId,
        /// The service.
        service: ServiceName,
        /// What it is now; `None` once nothing is left of it.
        state: Option<ServiceState>,
        /// What it was; `None` where there was nothing of it.
        before: Option<ServiceState>,
        /// Its container, while there is one.
        container: Option<ContainerId>,
        /// What it is made from.
        image: Option<ImageRef>,
    },
    /// How far an app's release is has changed.
    Release {
        /// The app.
        app: AppId,
        /// `None` once nothing is left of the app.
        state: Option<ReleaseState>,
        /// The release that runs whole.
        commit: Option<Commit>,
        /// The release that the target names.
        target: Option<Commit>,
    },
    /// How far a download is.
    Download {
        /// The app that it is for.
        app: AppId,
        /// The service that it is for.
        service: ServiceName,
        /// What is downloaded.
        image: ImageRef,
        /// 100 once it is there.
        percent: u8,
    },
    /// An update waits for a lock.
    LockWait {
        /// Whose lock.
        app: AppId,
        /// Which one.
        reason: String,
        /// Until the next attempt.
        retry_in: Duration,
    },
    /// A step failed and is tried again.
    StepFailed {
        /// What it is about.
        subject: Subject,
        /// The apps that it concerns.
        apps: BTreeSet<AppId>,
        /// What went wrong.
        reason: String,
        /// How often it has failed in a row.
        failures: u32,
        /// Until the next attempt.
        retry_in: Duration,
    },
    /// The target began to be applied.
    ApplyBegin {
        /// The device is in local mode.
        local_mode: bool,
    },
    /// The target is no longer being applied.
    ApplyEnd {
        /// It has been reached.
        reached: bool,
    },
}

/// What has changed from one status to the next, downloads aside.
pub(crate) fn between(
    before: &DeviceStatus,
    after: &DeviceStatus,
    local_mode: bool,
) -> Vec<Happening> {
    let mut happened = Vec::new();
    if after.applying && !before.applying {
        happened.push(Happening::ApplyBegin { local_mode });
    }
    let uuids: BTreeSet<&AppUuid> = before.apps.keys().chain(after.apps.keys()).collect();
    for uuid in uuids {
        let (was, is) = (before.apps.get(uuid), after.apps.get(uuid));
        let Some(app) = is.or(was).map(|app| app.id) else {
            continue;
        };
        services(app, was, is, &mut happened);
        release(app, was, is, &mut happened);
    }
    if before.applying && !after.applying {
        happened.push(Happening::ApplyEnd {
            reached: !after.update_failed,
        });
    }
    happened
}

fn services(
    app: AppId,
    was: Option<&AppStatus>,
    is: Option<&AppStatus>,
    happened: &mut Vec<Happening>,
) {
    let of = |app: Option<&AppStatus>| -> BTreeMap<ServiceName, Vec<ServiceStatus>> {
        let mut services: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for service in app.into_iter().flat_map(|app| &app.services) {
            let of_name = services.entry(service.name.clone()).or_default();
            of_name.push(service.clone());
        }
        services
    };
    let (was, is) = (of(was), of(is));
    for (name, entries) in &is {
        let earlier = was.get(name).map_or(&[][..], Vec::as_slice);
        for entry in entries {
            // Itself, or what it comes after.
            let itself = earlier.iter().find(|was| was.container == entry.container);
            let before = itself.or(earlier.first());
            let same = |was: &ServiceStatus| was.state == entry.state && was.image == entry.image;
            if itself.is_some_and(same) {
                continue;
            }
            happened.push(Happening::Service {
                app,
                service: name.clone(),
                state: Some(entry.state),
                before: before.map(|before| before.state),
                container: entry.container.clone(),
                image: Some(entry.image.clone()),
            });
        }
    }
    for (name, entries) in was {
        if !is.contains_key(&name) {
            happened.push(Happening::Service {
                app,
                service: name,
                state: None,
                before: entries.first().map(|entry| entry.state),
                container: None,
                image: None,
            });
        }
    }
}

fn release(
    app: AppId,
    was: Option<&AppStatus>,
    is: Option<&AppStatus>,
    happened: &mut Vec<Happening>,
) {
    let of = |app: Option<&AppStatus>| {
        app.map(|app| (app.state, app.commit.clone(), app.target_commit.clone()))
    };
    if of(was) == of(is) {
        return;
    }
    happened.push(Happening::Release {
        app,
        state: is.map(|app| app.state),
        commit: is.and_then(|app| app.commit.clone()),
        target: is.and_then(|app| app.target_commit.clone()),
    });
}

/// Tells of downloads, each seldom enough not to drown the rest.
#[derive(Debug, Default)]
pub(crate) struct Downloads(BTreeMap<Key, Told>);

/// The last word on a download; no time where none was said, since it had not begun.
type Told = (Option<Instant>, u8);

type Key = (AppId, ServiceName, ImageRef);

impl Downloads {
    /// What is to be told of the downloads of this status at this time.
    pub(crate) fn tell(&mut self, status: &DeviceStatus, now: Instant) -> Vec<Happening> {
        let mut happened = Vec::new();
        let mut listed = BTreeSet::new();
        for image in &status.images {
            let key = (image.app_id, image.service.clone(), image.name.clone());
            let percent = match (image.state, image.download_progress) {
                (ImageState::Downloading, Some(percent)) => percent.min(99),
                (ImageState::Downloaded, _) => 100,
                _ => continue,
            };
            let is_due = match self.0.get(&key) {
                // An image that was there was not downloaded.
                None => percent > 0 && percent < 100,
                Some((_, before)) if *before == percent => false,
                Some((None, _)) => true,
                Some((Some(at), _)) => percent == 100 || now.duration_since(*at) >= EVERY,
            };
            if percent < 100 {
                listed.insert(key.clone());
                self.0.entry(key.clone()).or_insert((None, 0));
            }
            if is_due {
                let (app, service, image) = key.clone();
                happened.push(Happening::Download {
                    app,
                    service,
                    image,
                    percent,
                });
                self.0.insert(key, (Some(now), percent));
            }
        }
        self.0.retain(|key, _| listed.contains(key));
        happened
    }
}

#[cfg(test)]
mod tests;
