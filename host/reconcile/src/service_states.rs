//! Whether the services of a release are healthy, by the state of their containers: for the trials of releases and for
//! those of the operating system.

use model::{ContainerHealth, ContainerState, CurrentService, DesiredApp};

/// Checks that all services of the release run and are healthy; otherwise returns the problem of the first that is not.
pub(crate) fn state_of_services(
    app: &DesiredApp,
    containers: &[CurrentService],
) -> Result<(), String> {
    for (name, service) in &app.services {
        if !service.running {
            continue;
        }
        let of_service = containers.iter().filter(|it| it.key.service == *name);
        // During a hand-over, the newer container counts.
        let newest = of_service.max_by_key(|container| container.created_at_ms);
        let Some(container) = newest else {
            return Err(format!("the service `{name}` has no container"));
        };
        let problem = match (container.state, container.health) {
            (ContainerState::Running, None | Some(ContainerHealth::Healthy)) => continue,
            // A service that is meant to end has ended.
            (ContainerState::Exited, _) if container.exit_code == Some(0) => continue,
            (ContainerState::Running, Some(ContainerHealth::Starting)) => {
                "has not passed its health check yet".to_owned()
            }
            (ContainerState::Running, Some(ContainerHealth::Unhealthy)) => {
                "fails its health check".to_owned()
            }
            (ContainerState::Restarting, _) => match container.exit_code {
                Some(code) => format!("ends with code {code} and is started again"),
                None => "ends and is started again".to_owned(),
            },
            (ContainerState::Exited, _) => match container.exit_code {
                Some(code) => format!("has ended with code {code}"),
                None => "has ended".to_owned(),
            },
            (ContainerState::Created, _) => "has not been started".to_owned(),
            (ContainerState::Paused, _) => "is paused".to_owned(),
            (ContainerState::Removing | ContainerState::Dead, _) => "is being removed".to_owned(),
        };
        return Err(format!("the service `{name}` {problem}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixtures::{container_of, shop};

    #[test]
    fn the_state_of_a_service_is_said_in_words() {
        use ContainerHealth::{Healthy, Starting, Unhealthy};
        use ContainerState::{Created, Exited, Restarting, Running};
        let shop = shop(
            "c1",
            json!([
                { "serviceName": "off", "running": false },
                { "serviceName": "web" },
            ]),
        );
        assert_eq!(
            state_of_services(&shop, &[]),
            Err("the service `web` has no container".to_owned())
        );
        for (state, health, exit_code, problem) in [
            (Running, None, None, None),
            (Running, Some(Healthy), None, None),
            (Exited, None, Some(0), None),
            (
                Running,
                Some(Starting),
                None,
                Some("has not passed its health check yet"),
            ),
            (
                Running,
                Some(Unhealthy),
                None,
                Some("fails its health check"),
            ),
            (
                Restarting,
                None,
                Some(3),
                Some("ends with code 3 and is started again"),
            ),
            (Exited, None, Some(137), Some("has ended with code 137")),
            (Created, None, None, Some("has not been started")),
        ] {
            let container = CurrentService {
                state,
                health,
                exit_code,
                ..container_of(&shop, "web")
            };
            let expected = problem.map_or(Ok(()), |problem| {
                Err(format!("the service `web` {problem}"))
            });
            assert_eq!(state_of_services(&shop, &[container]), expected);
        }
        // Of two containers in a hand-over, the newer one counts.
        let old = CurrentService {
            created_at_ms: 0,
            ..container_of(&shop, "web")
        };
        let new = CurrentService {
            created_at_ms: 1,
            state: Created,
            ..container_of(&shop, "web")
        };
        assert!(state_of_services(&shop, &[new, old]).is_err());
    }
}
