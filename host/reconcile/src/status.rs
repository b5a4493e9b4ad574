//! Computes the device's status from the state of the loop.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    AppStatus, AppUuid, Commit, ContainerState, CurrentService, DesiredApp, DesiredService,
    DesiredState, DeviceStatus, Image, ImageId, ImageRef, ImageState, ImageStatus, OsVersion,
    RejectedRelease, ReleaseId, ReleaseState, ServiceKey, ServiceState, ServiceStatus,
};
use plan::{BlockedSubject, Subject};

/// The inputs for a status.
pub(crate) struct StatusInputs<'a> {
    pub services: Vec<CurrentService>,
    pub images: Vec<&'a Image>,
    pub desired: Option<&'a DesiredState>,
    pub commits: &'a BTreeMap<AppUuid, Commit>,
    pub busy: &'a BTreeSet<Subject>,
    /// The states of services that steps are working on right now.
    pub service_states: &'a BTreeMap<ServiceKey, ServiceState>,
    /// The percentages of the images that are being pulled right now.
    pub progress: BTreeMap<ImageRef, u8>,
    pub waiting_on: &'a [BlockedSubject],
    /// Apps with an action under way.
    pub acting: BTreeSet<AppUuid>,
    /// Releases of the target that were not healthy.
    pub rejected: BTreeMap<AppUuid, RejectedRelease>,
    /// The version of the operating system that the target names, if it is not tried again.
    pub rejected_os: Option<OsVersion>,
    pub update: UpdateProgress,
}

/// The device's progress towards the target.
pub(crate) struct UpdateProgress {
    pub applying: bool,
    /// Whether the cloud is being polled for a new target.
    pub checking: bool,
    pub downloaded: bool,
    pub failed: bool,
}

pub(crate) fn build(sources: &StatusInputs<'_>) -> DeviceStatus {
    let mut apps: BTreeSet<&AppUuid> = sources.services.iter().map(|s| &s.key.app).collect();
    apps.extend(
        sources
            .desired
            .iter()
            .flat_map(|desired| desired.apps.keys()),
    );
    let update = &sources.update;
    DeviceStatus {
        applying: update.applying,
        update_pending: update.applying || update.checking,
        update_downloaded: update.applying && update.downloaded,
        update_failed: update.failed,
        apps: apps
            .into_iter()
            .filter_map(|uuid| Some((uuid.clone(), app(sources, uuid)?)))
            .collect(),
        acting: sources.acting.clone(),
        images: images(sources),
        waiting_on: sources.waiting_on.iter().map(ToString::to_string).collect(),
        rejected_os: sources.rejected_os.clone(),
    }
}

fn app(sources: &StatusInputs<'_>, uuid: &AppUuid) -> Option<AppStatus> {
    let desired = sources.desired.and_then(|desired| desired.apps.get(uuid));
    let containers = || sources.services.iter().filter(|s| s.key.app == *uuid);
    let mut services: Vec<ServiceStatus> = containers()
        .filter_map(|container| with_container(sources, desired, container))
        .collect();
    services.sort_by_key(|service| service.created_at_ms);
    for service in desired.iter().flat_map(|app| app.services.values()) {
        if containers().all(|container| container.key != service.key) {
            services.push(without_container(sources, desired, service));
        }
    }
    let id = desired.map(|app| app.id);
    Some(AppStatus {
        id: id.or_else(|| containers().next().map(|container| container.app_id))?,
        name: desired.map_or_else(|| uuid.to_string(), |app| app.name.clone()),
        commit: sources.commits.get(uuid).cloned(),
        target_commit: desired.and_then(|app| app.commit.clone()),
        target_release: desired.and_then(|app| app.release),
        state: release_state(desired, &services),
        services,
        rejected_release: sources.rejected.get(uuid).cloned(),
    })
}

fn with_container(
    sources: &StatusInputs<'_>,
    desired: Option<&DesiredApp>,
    container: &CurrentService,
) -> Option<ServiceStatus> {
    let desired_service = desired.and_then(|app| app.services.get(&container.key.service));
    let engine_state = match container.state {
        ContainerState::Created => ServiceState::Installed,
        ContainerState::Running => ServiceState::Running,
        ContainerState::Paused => ServiceState::Paused,
        ContainerState::Restarting => ServiceState::Restarting,
        ContainerState::Removing => ServiceState::Removing,
        ContainerState::Exited => ServiceState::Exited,
        ContainerState::Dead => ServiceState::Dead,
    };
    let state = match sources.service_states.get(&container.key) {
        // A container that is being started or stopped reports its new state only at the end. Of two containers in a
        // hand-over, the older one is handing over.
        Some(_) if container.is_handing_over() && container.state == ContainerState::Running => {
            ServiceState::HandingOver
        }
        Some(ServiceState::Starting) if container.state == ContainerState::Running => engine_state,
        // An old container, while the new one is created.
        Some(ServiceState::Installing) | None => engine_state,
        Some(state) => *state,
    };
    let release = container.release.as_ref();
    // An engine may name the image only by its id, which is a reference too.
    let image = container.image.parse().ok();
    let image = image.or_else(|| container.engine_image.as_str().parse().ok());
    Some(ServiceStatus {
        name: container.key.service.clone(),
        id: container.id,
        image_id: release.map_or(ImageId(0), |release| release.image_id),
        release: release.map_or(ReleaseId(0), |release| release.id),
        commit: release.and_then(|release| release.commit.clone()),
        image: image?,
        state,
        download_progress: None,
        container: Some(container.container.clone()),
        created_at_ms: Some(container.created_at_ms),
        in_target: desired_service.is_some(),
    })
}

fn without_container(
    sources: &StatusInputs<'_>,
    app: Option<&DesiredApp>,
    service: &DesiredService,
) -> ServiceStatus {
    let image = &service.config.image;
    let progress = sources.progress.get(image).copied();
    let pulling = sources.busy.contains(&Subject::Image(image.clone()));
    let state = match sources.service_states.get(&service.key) {
        Some(state) => *state,
        None if pulling || holder(sources, image).is_none() => ServiceState::Downloading,
        None => ServiceState::Downloaded,
    };
    ServiceStatus {
        name: service.key.service.clone(),
        id: service.id,
        image_id: service.image_id,
        release: service.release,
        commit: app.and_then(|app| app.commit.clone()),
        image: image.clone(),
        state,
        // A download that has not begun is at 0 (docs/spec/device.md#status-words).
        download_progress: (state == ServiceState::Downloading).then(|| progress.unwrap_or(0)),
        container: None,
        created_at_ms: None,
        in_target: true,
    }
}

/// Returns the state of the target's release: the highest applicable value wins (docs/spec/device.md#release-progress).
fn release_state(desired: Option<&DesiredApp>, services: &[ServiceStatus]) -> ReleaseState {
    if desired.is_some_and(|app| app.rejected) {
        return ReleaseState::Rejected;
    }
    let any = |states: &[ServiceState]| {
        let mut targets = services.iter().filter(|service| service.in_target);
        targets.any(|service| states.contains(&service.state))
    };
    // A container of the previous release says nothing about this one.
    let replaced = services.iter().any(|service| {
        let app = desired.filter(|_| service.container.is_some());
        app.is_some_and(|app| {
            app.release
                .is_some_and(|release| release != service.release)
        })
    });
    if any(&[ServiceState::Downloading]) {
        ReleaseState::Downloading
    } else if any(&[ServiceState::Downloaded]) {
        ReleaseState::Downloaded
    } else if replaced
        || any(&[
            ServiceState::Installing,
            ServiceState::Installed,
            ServiceState::Starting,
            ServiceState::Stopping,
            ServiceState::HandingOver,
            ServiceState::AwaitingHandover,
        ])
    {
        ReleaseState::ApplyingChanges
    } else {
        ReleaseState::Done
    }
}

/// Returns the images of the current and the desired releases, each once per service.
fn images(sources: &StatusInputs<'_>) -> Vec<ImageStatus> {
    let mut images: Vec<ImageStatus> = Vec::new();
    let source = sources
        .desired
        .iter()
        .flat_map(|desired| desired.apps.values());
    for service in source.flat_map(|app| app.services.values()) {
        let name = &service.config.image;
        let held = holder(sources, name).or_else(|| running_image(sources, service));
        let (key, id) = (&service.key, service.image_id);
        images.push(image(sources, name, held, service.app_id, key, id));
    }
    for container in &sources.services {
        let Ok(name) = container.image.parse::<ImageRef>() else {
            continue;
        };
        let listed = images.iter().any(|image| {
            let is_held = image.engine_id.as_ref() == Some(&container.engine_image);
            image.service == container.key.service && (image.name == name || is_held)
        });
        if !listed {
            let id = container
                .release
                .as_ref()
                .map_or(ImageId(0), |r| r.image_id);
            let held = holder(sources, &name);
            let key = &container.key;
            images.push(image(sources, &name, held, container.app_id, key, id));
        }
    }
    images
}

fn image(
    sources: &StatusInputs<'_>,
    name: &ImageRef,
    held: Option<&Image>,
    app_id: model::AppId,
    service: &ServiceKey,
    image_id: ImageId,
) -> ImageStatus {
    let busy = sources.busy.contains(&Subject::Image(name.clone()));
    let state = match (held, busy) {
        // A download that is about to end does not count as a removal.
        (Some(_), true) if !sources.progress.contains_key(name) => ImageState::Deleting,
        (Some(_), _) => ImageState::Downloaded,
        (None, _) => ImageState::Downloading,
    };
    let downloading = state == ImageState::Downloading;
    ImageStatus {
        name: name.clone(),
        app_id,
        service: service.service.clone(),
        image_id,
        engine_id: held.map(|image| image.id.clone()),
        state,
        download_progress: downloading.then(|| sources.progress.get(name).copied().unwrap_or(0)),
    }
}

fn holder<'a>(sources: &StatusInputs<'a>, name: &ImageRef) -> Option<&'a Image> {
    let mut images = sources.images.iter().copied();
    images.find(|image| plan::names(image, name))
}

/// Returns the image of the container that already is what the target describes. Its image may have another name than
/// in the target, by which the device then never downloads it (docs/spec/device.md#compose-compared).
fn running_image<'a>(sources: &StatusInputs<'a>, service: &DesiredService) -> Option<&'a Image> {
    let mut containers = sources.services.iter();
    let container = containers.find(|container| {
        container.key == service.key && container.digest.as_ref() == Some(&service.digest)
    })?;
    let mut images = sources.images.iter().copied();
    images.find(|image| image.id == container.engine_image)
}
