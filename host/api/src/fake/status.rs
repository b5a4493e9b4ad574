//! The status of a device with apps.

use model::{
    AppId, AppStatus, DeviceStatus, ImageState, ImageStatus, ReleaseId, ReleaseState, ServiceId,
    ServiceState, ServiceStatus,
};

/// Returns app 1 `shop` with a running service and one that is being downloaded; app 2 `farm` with
/// a running one.
pub(crate) fn two_apps() -> DeviceStatus {
    let mut status = DeviceStatus::default();
    status.apps.insert(
        "shop-uuid".parse().unwrap(),
        app(
            1,
            "shop",
            vec![
                service("web", 11, ServiceState::Running),
                ServiceStatus {
                    container: None,
                    created_at_ms: None,
                    download_progress: Some(40),
                    ..service("db", 12, ServiceState::Downloading)
                },
                ServiceStatus {
                    in_target: false,
                    ..service("gone", 13, ServiceState::Stopping)
                },
            ],
        ),
    );
    status.apps.insert(
        "farm-uuid".parse().unwrap(),
        app(2, "farm", vec![service("web", 21, ServiceState::Exited)]),
    );
    status.images = vec![
        image(1, "web", None),
        image(1, "db", Some(40)),
        image(2, "web", Some(61)),
    ];
    status
}

fn app(id: u64, name: &str, services: Vec<ServiceStatus>) -> AppStatus {
    AppStatus {
        id: AppId(id),
        name: name.into(),
        commit: Some(format!("old{id}").parse().unwrap()),
        target_commit: Some(format!("new{id}").parse().unwrap()),
        target_release: Some(ReleaseId(id * 100)),
        state: ReleaseState::Downloading,
        services,
        rejected_release: None,
    }
}

fn service(name: &str, id: u64, state: ServiceState) -> ServiceStatus {
    ServiceStatus {
        name: name.parse().unwrap(),
        id: ServiceId(id),
        image_id: model::ImageId(id + 1000),
        release: ReleaseId(7),
        commit: None,
        image: format!("registry/{name}:1").parse().unwrap(),
        state,
        download_progress: None,
        container: Some(format!("container-{id}").parse().unwrap()),
        created_at_ms: Some(1_700_000_000_123),
        in_target: true,
    }
}

fn image(app: u64, service: &str, progress: Option<u8>) -> ImageStatus {
    ImageStatus {
        name: format!("registry/{service}:1").parse().unwrap(),
        app_id: AppId(app),
        service: service.parse().unwrap(),
        image_id: model::ImageId(app),
        engine_id: progress.is_none().then(|| "sha256:ab".parse().unwrap()),
        state: if progress.is_some() {
            ImageState::Downloading
        } else {
            ImageState::Downloaded
        },
        download_progress: progress,
    }
}
