//! The reports of the cloud's apps: the releases of each, and their services and images.

use std::collections::BTreeMap;

use model::{
    AppId, AppStatus, AppUuid, Commit, DeviceStatus, ImageRef, ImageState, ImageStatus,
    RefusedTarget, ReleaseState, ServiceName,
};
use serde_json::{Map, Value, json};

/// Returns the apps in the cloud's target, each with its releases: the one in the target, and those that have
/// containers.
pub(super) fn apps(status: &DeviceStatus, in_target: &[(AppId, AppUuid)]) -> Value {
    let apps = in_target.iter().filter_map(|(_, uuid)| {
        let app = status.apps.get(uuid)?;
        Some((uuid.to_string(), app_of(status, app)))
    });
    Value::Object(apps.collect())
}

/// Adds the releases of a refused target. One that runs already is reported as running.
pub(super) fn reject(apps: &mut Value, refused: &RefusedTarget) {
    let Some(apps) = apps.as_object_mut() else {
        return;
    };
    for (uuid, commit) in &refused.releases {
        let app = apps.entry(uuid.as_str());
        let app = app.or_insert_with(|| json!({ "releases": {} }));
        if let Some(releases) = app["releases"].as_object_mut() {
            let release = releases.entry(commit.as_str());
            release.or_insert_with(|| Release::new(ReleaseState::Rejected).report());
        }
    }
}

/// The reported properties of a release.
struct Release {
    state: ReleaseState,
    services: Map<String, Value>,
}

impl Release {
    fn new(state: ReleaseState) -> Self {
        Release {
            state,
            services: Map::new(),
        }
    }

    fn add(&mut self, name: &ServiceName, image: &ImageRef, status: &str, progress: Option<u8>) {
        let mut report = json!({ "image": image.to_string(), "status": status });
        if let Some(progress) = progress {
            report["download_progress"] = progress.into();
        }
        self.services.insert(name.to_string(), report);
    }

    fn report(self) -> Value {
        json!({ "update_status": self.state, "services": self.services })
    }
}

fn app_of(status: &DeviceStatus, app: &AppStatus) -> Value {
    let mut releases: BTreeMap<&Commit, Release> = BTreeMap::new();
    let target = app.target_commit.as_ref();
    if let Some(commit) = target {
        releases.insert(commit, Release::new(app.state));
    }
    for service in &app.services {
        let of_target = target.filter(|_| service.in_target);
        let Some(commit) = service.commit.as_ref().or(of_target) else {
            continue;
        };
        let release = releases.entry(commit);
        let release = release.or_insert_with(|| Release::new(ReleaseState::Done));
        let (state, progress) = (service.state.into(), service.download_progress);
        release.add(&service.name, &service.image, state, progress);
    }
    if let Some(commit) = target
        && let Some(release) = releases.get_mut(commit)
    {
        for image in coming(status, app, commit) {
            let (state, progress) = (image.state.into(), image.download_progress);
            release.add(&image.service, &image.name, state, progress);
        }
        if release.state == ReleaseState::Rejected {
            release.services.clear();
        }
    }
    if let Some(rejected) = &app.rejected_release {
        let release = releases.entry(&rejected.commit);
        release.or_insert_with(|| Release::new(ReleaseState::Aborted));
    }
    let releases = releases.into_iter();
    let releases: Map<String, Value> = releases
        .map(|(commit, release)| (commit.to_string(), release.report()))
        .collect();
    let mut report = json!({ "releases": releases });
    if let Some(commit) = &app.commit {
        report["release_uuid"] = commit.as_str().into();
    }
    report
}

/// Returns the images of the target's release for which the service still has an older container.
fn coming<'a>(
    status: &'a DeviceStatus,
    app: &'a AppStatus,
    target: &'a Commit,
) -> impl Iterator<Item = &'a ImageStatus> {
    status.images.iter().filter(move |image| {
        let containers = || app.services.iter().filter(|of| of.name == image.service);
        image.app_id == app.id
            && image.state != ImageState::Deleting
            && containers().any(|of| of.in_target)
            && containers().all(|of| of.image != image.name && of.commit.as_ref() != Some(target))
    })
}

#[cfg(test)]
mod tests {
    use model::{ImageId, ReleaseId, ServiceId, ServiceState, ServiceStatus};

    use super::*;

    const APP: &str = "5f0ee0e1d1b84a1f9a6f5a7d3a1c9b20";

    fn service(
        name: &str,
        commit: Option<&str>,
        image: &str,
        state: ServiceState,
    ) -> ServiceStatus {
        ServiceStatus {
            name: name.parse().unwrap(),
            id: ServiceId(1),
            image_id: ImageId(1),
            release: ReleaseId(1),
            commit: commit.map(|commit| commit.parse().unwrap()),
            image: image.parse().unwrap(),
            state,
            download_progress: (state == ServiceState::Downloading).then_some(30),
            container: None,
            created_at_ms: None,
            in_target: true,
        }
    }

    fn status(state: ReleaseState, services: Vec<ServiceStatus>) -> DeviceStatus {
        let app = AppStatus {
            id: AppId(4),
            name: "pump".into(),
            commit: Some("c1".parse().unwrap()),
            target_commit: Some("c2".parse().unwrap()),
            target_release: Some(ReleaseId(2)),
            state,
            services,
            rejected_release: None,
        };
        DeviceStatus {
            apps: [(APP.parse().unwrap(), app)].into(),
            images: vec![ImageStatus {
                name: "r/a:2".parse().unwrap(),
                app_id: AppId(4),
                service: "a".parse().unwrap(),
                image_id: ImageId(2),
                engine_id: None,
                state: ImageState::Downloading,
                download_progress: Some(40),
            }],
            ..DeviceStatus::default()
        }
    }

    fn app_report(status: &DeviceStatus) -> Value {
        apps(status, &[(AppId(4), APP.parse().unwrap())])[APP].take()
    }

    #[test]
    fn both_releases_are_reported_while_one_replaces_the_other() {
        let services = vec![
            service("a", Some("c1"), "r/a:1", ServiceState::Running),
            service("b", Some("c2"), "r/b:2", ServiceState::Running),
            service("c", None, "r/c:2", ServiceState::Downloading),
        ];
        assert_eq!(
            app_report(&status(ReleaseState::Downloading, services)),
            json!({
                "release_uuid": "c1",
                "releases": {
                    "c1": { "update_status": "done", "services": {
                        "a": { "image": "r/a:1", "status": "Running" },
                    }},
                    "c2": { "update_status": "downloading", "services": {
                        "b": { "image": "r/b:2", "status": "Running" },
                        "c": { "image": "r/c:2", "status": "Downloading", "download_progress": 30 },
                        "a": { "image": "r/a:2", "status": "Downloading", "download_progress": 40 },
                    }},
                },
            })
        );
    }

    #[test]
    fn a_running_release_is_reported_alone_and_a_rejected_one_without_services() {
        let running = vec![service("a", Some("c2"), "r/a:2", ServiceState::Running)];
        let done = app_report(&status(ReleaseState::Done, running));
        let expected = json!({ "c2": { "update_status": "done", "services": {
            "a": { "image": "r/a:2", "status": "Running" },
        }}});
        assert_eq!(done["releases"], expected);
        let before = vec![service("a", Some("c1"), "r/a:1", ServiceState::Running)];
        let rejected = app_report(&status(ReleaseState::Rejected, before));
        let expected = json!({ "update_status": "rejected", "services": {} });
        assert_eq!(rejected["releases"]["c2"], expected);
        assert_eq!(
            rejected["releases"]["c1"]["services"]["a"]["status"],
            "Running"
        );
    }

    #[test]
    fn an_unhealthy_release_is_reported_beside_the_running_one() {
        let running = vec![service("a", Some("c2"), "r/a:2", ServiceState::Running)];
        let mut status = status(ReleaseState::Done, running);
        for app in status.apps.values_mut() {
            app.rejected_release = Some(model::RejectedRelease {
                commit: "c3".parse().unwrap(),
                reason: "it fails".to_owned(),
            });
        }
        let releases = app_report(&status)["releases"].take();
        let expected = json!({ "update_status": "aborted", "services": {} });
        assert_eq!(releases["c3"], expected);
        assert_eq!(releases["c2"]["update_status"], "done");
    }

    #[test]
    fn apps_outside_the_target_are_not_reported() {
        let status = status(ReleaseState::Done, Vec::new());
        assert_eq!(apps(&status, &[]), json!({}));
    }
}
