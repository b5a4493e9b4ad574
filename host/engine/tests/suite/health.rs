//! Health checks of services.

use std::time::Duration;

use futures::StreamExt;
use model::{Container, ContainerHealth, Healthcheck};

use super::{Fixture, PATIENCE, Program, Service};

const PORT: u16 = 8080;

/// A service with frequent checks.
fn checked(fixture: &dyn Fixture, program: &Program) -> Service {
    let mut service = fixture.service("web", program);
    service.config.healthcheck = Some(Healthcheck {
        test: fixture.answers_on(PORT),
        interval: Some(200_000_000),
        timeout: Some(10_000_000_000),
        start_period: None,
        retries: Some(2),
    });
    service
}

/// Starts the service and checks its health only after events, until it is as expected.
async fn until(fixture: &dyn Fixture, service: &Service, health: ContainerHealth) -> Container {
    let engine = fixture.engine();
    fixture.pull().await;
    let mut events = engine.events().await.unwrap();
    let id = fixture.start(service).await;
    let found = async {
        loop {
            let container = fixture.find(&id).await.unwrap();
            if container.health == Some(health) {
                return container;
            }
            assert_eq!(container.health, Some(ContainerHealth::Starting));
            events.next().await.expect("the engine ended its events");
        }
    };
    let found = tokio::time::timeout(PATIENCE, found).await;
    found.unwrap_or_else(|_| panic!("it does not become {health}, or no event says so"))
}

pub async fn service_that_answers_its_check_is_healthy_while_it_runs(fixture: &dyn Fixture) {
    let text = "hello".to_owned();
    let service = checked(fixture, &Program::Serve { port: PORT, text });
    let container = until(fixture, &service, ContainerHealth::Healthy).await;
    let engine = fixture.engine();
    let stopped = engine.stop_container(&container.id, Duration::ZERO).await;
    stopped.unwrap();
    let stopped = fixture.find(&container.id).await.unwrap();
    assert_eq!(stopped.health, None, "{stopped:?}");
}

pub async fn service_that_fails_its_check_is_unhealthy_after_its_retries(fixture: &dyn Fixture) {
    let service = checked(fixture, &Program::Tick);
    until(fixture, &service, ContainerHealth::Unhealthy).await;
}

pub async fn service_without_a_check_is_neither_healthy_nor_unhealthy(fixture: &dyn Fixture) {
    let service = fixture.service("web", &Program::Tick);
    let id = fixture.start(&service).await;
    assert_eq!(fixture.find(&id).await.unwrap().health, None);
}
