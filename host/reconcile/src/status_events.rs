//! Events of the loop: changes of its published status, and the progress of downloads.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use device_types::event::{
    ApplyBegin, ApplyEnd, Audience, Download, Event, ReleaseChanged, ServiceChanged,
};
use model::{
    AppId, AppStatus, AppUuid, DeviceStatus, ImageRef, ImageState, ServiceName, ServiceStatus,
};
use tokio::time::Instant;

/// The shortest time between two events on the progress of one download.
const EVERY: Duration = Duration::from_secs(1);

/// Returns the changes from one status to the next, except for downloads.
pub(crate) fn between(
    before: &DeviceStatus,
    after: &DeviceStatus,
    local_mode: bool,
) -> Vec<(Audience, Event)> {
    let mut events = Vec::new();
    if after.applying && !before.applying {
        events.push((
            Audience::Everyone,
            Event::ApplyBegin(ApplyBegin { local_mode }),
        ));
    }
    let uuids: BTreeSet<&AppUuid> = before.apps.keys().chain(after.apps.keys()).collect();
    for uuid in uuids {
        let (was, is) = (before.apps.get(uuid), after.apps.get(uuid));
        let Some(app) = is.or(was).map(|app| app.id) else {
            continue;
        };
        services(app, was, is, &mut events);
        release(app, was, is, &mut events);
    }
    if before.applying && !after.applying {
        let reached = !after.update_failed;
        events.push((Audience::Everyone, Event::ApplyEnd(ApplyEnd { reached })));
    }
    events
}

fn services(
    app: AppId,
    was: Option<&AppStatus>,
    is: Option<&AppStatus>,
    events: &mut Vec<(Audience, Event)>,
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
            // The same entry, or the one it replaces.
            let itself = earlier.iter().find(|was| was.container == entry.container);
            let before = itself.or(earlier.first());
            let same = |was: &ServiceStatus| was.state == entry.state && was.image == entry.image;
            if itself.is_some_and(same) {
                continue;
            }
            let changed = ServiceChanged {
                app_id: app,
                service: name.clone(),
                status: Some(entry.state),
                before: before.map(|before| before.state),
                container_id: entry.container.clone(),
                image: Some(entry.image.clone()),
            };
            events.push((Audience::App(app), Event::Service(changed)));
        }
    }
    for (name, entries) in was {
        if !is.contains_key(&name) {
            let removed = ServiceChanged {
                app_id: app,
                service: name,
                status: None,
                before: entries.first().map(|entry| entry.state),
                container_id: None,
                image: None,
            };
            events.push((Audience::App(app), Event::Service(removed)));
        }
    }
}

fn release(
    app: AppId,
    was: Option<&AppStatus>,
    is: Option<&AppStatus>,
    events: &mut Vec<(Audience, Event)>,
) {
    let of = |app: Option<&AppStatus>| {
        app.map(|app| (app.state, app.commit.clone(), app.target_commit.clone()))
    };
    if of(was) == of(is) {
        return;
    }
    let changed = ReleaseChanged {
        app_id: app,
        status: is.map(|app| app.state),
        commit: is.and_then(|app| app.commit.clone()),
        target_commit: is.and_then(|app| app.target_commit.clone()),
    };
    events.push((Audience::App(app), Event::Release(changed)));
}

/// Events on downloads, rare enough not to drown out the rest.
#[derive(Debug, Default)]
pub(crate) struct Downloads(BTreeMap<Key, LastEvent>);

/// When the last event on a download was sent, and its percentage; no time until the download has begun.
type LastEvent = (Option<Instant>, u8);

type Key = (AppId, ServiceName, ImageRef);

impl Downloads {
    /// Returns the events that are due at this time for the downloads of this status.
    pub(crate) fn due(&mut self, status: &DeviceStatus, now: Instant) -> Vec<(Audience, Event)> {
        let mut events = Vec::new();
        let mut listed = BTreeSet::new();
        for image in &status.images {
            let key = (image.app_id, image.service.clone(), image.name.clone());
            let percent = match (image.state, image.download_progress) {
                (ImageState::Downloading, Some(percent)) => percent.min(99),
                (ImageState::Downloaded, _) => 100,
                _ => continue,
            };
            let is_due = match self.0.get(&key) {
                // An image that existed already was not downloaded.
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
                let download = Download {
                    app_id: app,
                    service,
                    image,
                    progress: percent,
                };
                events.push((Audience::App(app), Event::Download(download)));
                self.0.insert(key, (Some(now), percent));
            }
        }
        self.0.retain(|key, _| listed.contains(key));
        events
    }
}

#[cfg(test)]
mod tests;
