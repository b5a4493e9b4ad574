//! Which events are sent, and which are not.

use model::{ImageId, ImageStatus, ReleaseId, ReleaseState, ServiceId, ServiceState};

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
        rejected_release: None,
    };
    DeviceStatus {
        apps: [("shop".parse().unwrap(), app)].into(),
        ..DeviceStatus::default()
    }
}

/// Returns the service's changes of state: before, after, container.
fn changes(before: Vec<ServiceStatus>, after: Vec<ServiceStatus>) -> Vec<String> {
    let events = between(&status(before), &status(after), true);
    let lines = events.into_iter().map(|event| match event {
        (Audience::App(AppId(7)), Event::Service(changed)) => {
            let word = |state: Option<ServiceState>| state.map_or("nothing", |state| state.into());
            let container = changed
                .container_id
                .map_or("none".to_owned(), |id| id.to_string());
            format!(
                "{} to {} in {container}",
                word(changed.before),
                word(changed.status)
            )
        }
        other => panic!("{other:?}"),
    });
    lines.collect()
}

#[test]
fn each_change_of_a_service_is_one_event() {
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
        // Replaced between two statuses.
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
            changes(before.clone(), after.clone()),
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
    let events = |before: &DeviceStatus, after: &DeviceStatus| {
        let events = between(before, after, false).into_iter();
        events.map(|(_, event)| event).collect::<Vec<_>>()
    };
    let changes = events(&before, &DeviceStatus::default());
    assert_eq!(changes.len(), 3, "{changes:?}");
    assert!(matches!(&changes[0], Event::Service(gone) if gone.status.is_none()));
    assert!(matches!(&changes[1], Event::Release(gone) if gone.status.is_none()));
    assert_eq!(changes[2], Event::ApplyEnd(ApplyEnd { reached: true }));
    let begin = events(&DeviceStatus::default(), &before);
    assert_eq!(
        begin[0],
        Event::ApplyBegin(ApplyBegin { local_mode: false })
    );
}

#[test]
fn a_download_has_an_event_once_a_second_and_at_its_end() {
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
    let mut due = |percent: Option<u8>, milliseconds: u64| {
        let now = begin + Duration::from_millis(milliseconds);
        let due = downloads.due(&at(percent), now).into_iter();
        let percentages = due.map(|event| match event {
            (Audience::App(AppId(7)), Event::Download(download)) => download.progress,
            other => panic!("{other:?}"),
        });
        percentages.collect::<Vec<_>>()
    };
    let none: [u8; 0] = [];
    // It existed already, so nothing was downloaded.
    assert_eq!(due(None, 0), none);
    assert_eq!(due(Some(0), 0), none, "it waits for its turn");
    assert_eq!(due(Some(1), 10), [1]);
    assert_eq!(due(Some(30), 500), none);
    assert_eq!(due(Some(60), 1_010), [60]);
    assert_eq!(due(Some(60), 5_000), none);
    assert_eq!(due(None, 5_001), [100], "the end is not held back");
    assert_eq!(due(None, 9_000), none);
    // It ended before it appeared in a second status.
    assert_eq!(due(Some(0), 10_000), none);
    assert_eq!(due(None, 10_001), [100]);
}
