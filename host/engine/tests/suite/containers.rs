//! Containers: created, started, stopped, renamed, removed.

use std::collections::BTreeMap;
use std::time::Duration;

use engine::EngineError;
use model::{ContainerState, RestartPolicy};

use super::{Fixture, Program};

pub async fn engine_reports_its_version(fixture: &dyn Fixture) {
    let info = fixture.engine().info().await.unwrap();
    assert!(!info.version.is_empty());
}

pub async fn created_container_is_listed_with_its_definition(fixture: &dyn Fixture) {
    let image = fixture.pull().await;
    let service = fixture.service("web", &Program::Tick);
    let id = fixture.create(&service).await;

    let listed = fixture.find(&id).await.unwrap();
    assert_eq!(listed.engine, fixture.engine().kind());
    assert_eq!(listed.name, service.name);
    assert_eq!(listed.image, fixture.image().as_str());
    assert_eq!(listed.image_id, image.id);
    assert_eq!(listed.state, ContainerState::Created);
    assert_eq!(listed.exit_code, None);
    assert!(
        listed.created_at_ms > 1_700_000_000_000,
        "{}",
        listed.created_at_ms
    );
    for (label, value) in &service.config.labels {
        assert_eq!(listed.labels.get(label), Some(value), "{label}");
    }
}

pub async fn created_container_does_not_run_until_it_is_started(fixture: &dyn Fixture) {
    let id = fixture
        .create(&fixture.service("web", &Program::Tick))
        .await;
    assert_eq!(
        fixture.find(&id).await.unwrap().state,
        ContainerState::Created
    );
    fixture.engine().start_container(&id).await.unwrap();
    assert_eq!(
        fixture.find(&id).await.unwrap().state,
        ContainerState::Running
    );
}

pub async fn starting_a_running_container_is_no_error(fixture: &dyn Fixture) {
    let id = fixture.start(&fixture.service("web", &Program::Tick)).await;
    fixture.engine().start_container(&id).await.unwrap();
    assert_eq!(
        fixture.find(&id).await.unwrap().state,
        ContainerState::Running
    );
}

pub async fn stopped_container_stays_stopped_whatever_its_restart_policy(fixture: &dyn Fixture) {
    for (name, policy) in [
        ("always", RestartPolicy::Always),
        ("unless", RestartPolicy::UnlessStopped),
        ("failure", RestartPolicy::OnFailure),
    ] {
        let mut service = fixture.service(name, &Program::Tick);
        service.config.restart = policy;
        let id = fixture.start(&service).await;
        fixture
            .engine()
            .stop_container(&id, Duration::ZERO)
            .await
            .unwrap();
        let stopped = fixture.find(&id).await.unwrap();
        assert_eq!(stopped.state, ContainerState::Exited, "{name}");
        assert!(
            stopped.exit_code.is_some_and(|code| code != 0),
            "{stopped:?}"
        );
    }
}

pub async fn stopping_a_stopped_or_missing_container_is_no_error(fixture: &dyn Fixture) {
    let engine = fixture.engine();
    let id = fixture
        .create(&fixture.service("web", &Program::Tick))
        .await;
    engine.stop_container(&id, Duration::ZERO).await.unwrap();
    engine.start_container(&id).await.unwrap();
    engine.stop_container(&id, Duration::ZERO).await.unwrap();
    engine.stop_container(&id, Duration::ZERO).await.unwrap();
    engine.remove_container(&id).await.unwrap();
    engine.stop_container(&id, Duration::ZERO).await.unwrap();
}

pub async fn stopped_container_starts_again(fixture: &dyn Fixture) {
    let id = fixture.start(&fixture.service("web", &Program::Tick)).await;
    fixture
        .engine()
        .stop_container(&id, Duration::ZERO)
        .await
        .unwrap();
    fixture.engine().start_container(&id).await.unwrap();
    let again = fixture.find(&id).await.unwrap();
    assert_eq!(
        (again.state, again.exit_code),
        (ContainerState::Running, None)
    );
}

pub async fn removing_takes_running_and_stopped_containers_and_is_no_error_twice(
    fixture: &dyn Fixture,
) {
    let engine = fixture.engine();
    let running = fixture
        .start(&fixture.service("running", &Program::Tick))
        .await;
    let made = fixture
        .create(&fixture.service("made", &Program::Tick))
        .await;
    for id in [&running, &made] {
        engine.remove_container(id).await.unwrap();
        assert_eq!(fixture.find(id).await, None);
        engine.remove_container(id).await.unwrap();
    }
    assert_eq!(engine.containers().await.unwrap(), []);
}

pub async fn renamed_container_keeps_its_id(fixture: &dyn Fixture) {
    let engine = fixture.engine();
    let id = fixture.start(&fixture.service("old", &Program::Tick)).await;
    for _ in 0..2 {
        engine
            .rename_container(&id, &fixture.name("new"))
            .await
            .unwrap();
        let renamed = fixture.find(&id).await.unwrap();
        assert_eq!(renamed.name, fixture.name("new"));
        assert_eq!(renamed.state, ContainerState::Running);
    }
}

pub async fn container_name_in_use_is_a_conflict(fixture: &dyn Fixture) {
    let first = fixture.service("first", &Program::Tick);
    fixture.create(&first).await;
    let again = fixture.try_create(&first).await;
    assert!(
        matches!(again, Err(EngineError::Conflict { .. })),
        "{again:?}"
    );

    let second = fixture
        .create(&fixture.service("second", &Program::Tick))
        .await;
    let renamed = fixture
        .engine()
        .rename_container(&second, &first.name)
        .await;
    assert!(
        matches!(renamed, Err(EngineError::Conflict { .. })),
        "{renamed:?}"
    );
    assert_eq!(fixture.engine().containers().await.unwrap().len(), 2);
}

pub async fn exit_code_of_a_finished_container_is_listed(fixture: &dyn Fixture) {
    for code in [0, 3, 255] {
        let service = fixture.service(&format!("exit{code}"), &Program::Exit(code));
        let id = fixture.start(&service).await;
        let ended = fixture.wait_for(&id, ContainerState::Exited).await;
        assert_eq!(ended.exit_code, Some(i64::from(code)));
    }
}

pub async fn restart_policies_start_what_they_should(fixture: &dyn Fixture) {
    use RestartPolicy::{Always, No, OnFailure, UnlessStopped};
    for (policy, code, again) in [
        (No, 1, false),
        (OnFailure, 0, false),
        (OnFailure, 1, true),
        (Always, 0, true),
        (UnlessStopped, 1, true),
    ] {
        let mut service = fixture.service(&format!("{policy:?}-{code}"), &Program::Exit(code));
        service.config.restart = policy;
        let id = fixture.start(&service).await;
        if again {
            // It ends at once, so sooner or later it is observed between two runs.
            let waiting = fixture.wait_for(&id, ContainerState::Restarting).await;
            assert_eq!(waiting.exit_code, Some(i64::from(code)), "{policy:?}");
        } else {
            fixture.wait_for(&id, ContainerState::Exited).await;
        }
        fixture.engine().remove_container(&id).await.unwrap();
    }
}

pub async fn variables_reach_the_program_and_are_listed(fixture: &dyn Fixture) {
    let mut service = fixture.service("env", &Program::Environment);
    service.config.environment = BTreeMap::from([
        ("GREETING".into(), "hello = world".into()),
        ("EMPTY".into(), String::new()),
        ("BOTH".into(), "of the service".into()),
    ]);
    service.init_environment = BTreeMap::from([
        ("AT_INIT".into(), "einmal ü".into()),
        ("BOTH".into(), "at creation".into()),
    ]);
    let id = fixture.create(&service).await;
    let environment = fixture.engine().environment(&id).await.unwrap();
    fixture.engine().remove_container(&id).await.unwrap();

    let (code, lines) = fixture.finish(&service).await;
    assert_eq!(code, Some(0));
    for (name, value) in [
        ("GREETING", "hello = world"),
        ("EMPTY", ""),
        ("AT_INIT", "einmal ü"),
        ("BOTH", "of the service"),
    ] {
        assert_eq!(
            environment.get(name).map(String::as_str),
            Some(value),
            "{name}"
        );
        assert!(
            lines.contains(&format!("{name}={value}")),
            "{name} in {lines:?}"
        );
    }
}

pub async fn starting_a_missing_container_is_not_found(fixture: &dyn Fixture) {
    let engine = fixture.engine();
    let id = fixture
        .create(&fixture.service("web", &Program::Tick))
        .await;
    engine.remove_container(&id).await.unwrap();
    let started = engine.start_container(&id).await;
    assert!(
        matches!(started, Err(EngineError::NotFound { .. })),
        "{started:?}"
    );
    let renamed = engine.rename_container(&id, &fixture.name("new")).await;
    assert!(
        matches!(renamed, Err(EngineError::NotFound { .. })),
        "{renamed:?}"
    );
    let environment = engine.environment(&id).await;
    assert!(
        matches!(environment, Err(EngineError::NotFound { .. })),
        "{environment:?}"
    );
}
