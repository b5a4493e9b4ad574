//! What is told, and what is not.

use model::{ImageId, ImageStatus, ReleaseId, ServiceId};

use super::*;

fn entry(state: ServiceState, container: Option<&str>) -> ServiceStatus {
    ServiceStatus {
        name: "web".parse().unwrap(),
        id: ServiceId(1),
        image_id: ImageId(1),
        release: ReleaseId(1),
        commit: None,
        image: "web:1".parse().unwrap(),
        state,
        download_progress: None,
        container: container.map(|id| id.parse().unwrap()),
        created_at_ms: None,
        in_target: true,
    }
}

fn status(services: Vec<ServiceStatus>) -> DeviceStatus {
    let app = AppStatus {
        id: AppId(7),
        name: "shop".into(),
        commit: None,
        target_commit: Some("c1".parse().unwrap()),
        target_release: None,
        state: ReleaseState::Done,
        services,
    };
    DeviceStatus {
        apps: [("shop".parse().unwrap(), app)].into(),
        ..DeviceStatus::default()
    }
}

/// The states of the service as they are told: before, after, container.
fn told(before: Vec<ServiceStatus>, after: Vec<ServiceStatus>) -> Vec<String> {
    let changes = between(&status(before), &status(after), true);
    let lines = changes.into_iter().map(|happening| match happening {
        Happening::Service {
            state,
            before,
            container,
            ..
        } => {
            let word = |state: Option<ServiceState>| state.map_or("nothing", ServiceState::as_str);
            let container = container.map_or("none".to_owned(), |id| id.to_string());
            format!("{} to {} in {container}", word(before), word(state))
        }
        other => panic!("{other:?}"),
    });
    lines.collect()
}

#[test]
fn each_change_of_a_service_is_told_once() {
    use ServiceState::{AwaitingHandover, Downloading, HandingOver, Running, Stopping};
    for (before, after, expected) in [
        (
            vec![],
            vec![entry(Downloading, None)],
            vec!["nothing to Downloading in none"],
        ),
        (
            vec![entry(Running, Some("a"))],
            vec![entry(Running, Some("a"))],
            vec![],
        ),
        (
            vec![entry(Downloading, None)],
            vec![entry(Running, Some("a"))],
            vec!["Downloading to Running in a"],
        ),
        (
            vec![entry(Running, Some("a"))],
            vec![entry(Stopping, Some("a"))],
            vec!["Running to Stopping in a"],
        ),
        // Replaced between two looks.
        (
            vec![entry(Running, Some("a"))],
            vec![entry(Running, Some("b"))],
            vec!["Running to Running in b"],
        ),
        (
            vec![entry(Running, Some("a"))],
            vec![
                entry(HandingOver, Some("a")),
                entry(AwaitingHandover, Some("b")),
            ],
            vec![
                "Running to Handing over in a",
                "Running to Awaiting handover in b",
            ],
        ),
        (
            vec![entry(Stopping, Some("a"))],
            vec![],
            vec!["Stopping to nothing in none"],
        ),
    ] {
        assert_eq!(
            told(before.clone(), after.clone()),
            expected,
            "{before:?} {after:?}"
        );
    }
}

#[test]
fn an_app_that_goes_takes_its_services_and_its_release_with_it() {
    let before = DeviceStatus {
        applying: true,
        ..status(vec![entry(ServiceState::Running, Some("a"))])
    };
    let changes = between(&before, &DeviceStatus::default(), false);
    assert_eq!(changes.len(), 3, "{changes:?}");
    assert!(matches!(
        &changes[0],
        Happening::Service { state: None, .. }
    ));
    assert!(matches!(
        &changes[1],
        Happening::Release { state: None, .. }
    ));
    assert_eq!(changes[2], Happening::ApplyEnd { reached: true });
    let begin = between(&DeviceStatus::default(), &before, false);
    assert_eq!(begin[0], Happening::ApplyBegin { local_mode: false });
}

#[test]
fn a_download_is_told_of_once_a_second_and_at_its_end() {
    let at = |percent: Option<u8>| DeviceStatus {
        images: vec![ImageStatus {
            name: "web:1".parse().unwrap(),
            app_id: AppId(7),
            service: "web".parse().unwrap(),
            image_id: ImageId(1),
            engine_id: None,
            state: match percent {
                Some(_) => ImageState::Downloading,
                None => ImageState::Downloaded,
            },
            download_progress: percent,
        }],
        ..DeviceStatus::default()
    };
    let begin = Instant::now();
    let mut downloads = Downloads::default();
    let mut tell = |percent: Option<u8>, milliseconds: u64| {
        let now = begin + Duration::from_millis(milliseconds);
        let told = downloads.tell(&at(percent), now);
        let told = told.into_iter().map(|happening| match happening {
            Happening::Download { percent, .. } => percent,
            other => panic!("{other:?}"),
        });
        told.collect::<Vec<_>>()
    };
    let none: [u8; 0] = [];
    // It was there, so nothing was downloaded.
    assert_eq!(tell(None, 0), none);
    assert_eq!(tell(Some(0), 0), none, "it waits for its turn");
    assert_eq!(tell(Some(1), 10), [1]);
    assert_eq!(tell(Some(30), 500), none);
    assert_eq!(tell(Some(60), 1_010), [60]);
    assert_eq!(tell(Some(60), 5_000), none);
    assert_eq!(tell(None, 5_001), [100], "the end is not held back");
    assert_eq!(tell(None, 9_000), none);
    // Over before anybody has looked at it twice.
    assert_eq!(tell(Some(0), 10_000), none);
    assert_eq!(tell(None, 10_001), [100]);
}
