//! Containers: one request to list them all, and the steps of their life cycle.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use bollard::models::{
    ContainerCreateResponse, ContainerInspectResponse, ContainerSummary, ContainerSummaryStateEnum,
};
use bollard::query_parameters::{
    InspectContainerOptions, ListContainersOptions, RemoveContainerOptions, RenameContainerOptions,
    StartContainerOptions, StopContainerOptions, WaitContainerOptions,
};
use futures::StreamExt;
use futures::stream::BoxStream;
use http::Method;
use model::{Container, ContainerHealth, ContainerId, ContainerState, EngineKind};

use super::connect::{ANSWER_TIMEOUT, is_not_found, refusal};
use super::{Docker, create_request, logs, path_part};
use crate::{ContainerSpec, Containers, CreatedContainer, EngineError, LogLine, LogsFrom};

#[async_trait]
impl Containers for Docker {
    async fn containers(&self) -> Result<Vec<Container>, EngineError> {
        let summaries = self.summaries(None).await?.into_iter();
        let image_label = self.ownership.branding.label(create_request::IMAGE_LABEL);
        Ok(summaries
            .filter_map(|summary| container(summary, &image_label))
            .collect())
    }

    async fn create_container(
        &self,
        spec: &ContainerSpec<'_>,
    ) -> Result<CreatedContainer, EngineError> {
        let name = path_part("container's name", spec.name)?;
        let version = self.connection.client().await?.version;
        let request = create_request::build(spec, version, &self.ownership.branding)?;
        let path = format!("/containers/create?name={name}");
        let answer: Result<ContainerCreateResponse, _> = self
            .connection
            .ask(version, Method::POST, &path, Some(&request.body))
            .await;
        let created = answer.map_err(|error| match refusal(&error) {
            Some((409, _)) => name_taken(name),
            Some((404, message)) if message.contains("No such image") => EngineError::not_found(
                format!("the image `{}` (`{}`)", spec.config.image, spec.image_id),
            ),
            Some((400, message)) => {
                EngineError::Invalid(format!("`{name}` cannot be created: {}", message.trim()))
            }
            _ => self.failed(format!("create the container `{name}`"), error),
        })?;
        if let Err(error) = self.join(&created.id, &request.joins).await {
            // A partial container is worse than none; if this fails too, the next start joins the
            // networks.
            let _ = self.remove_by_force(&created.id).await;
            return Err(error);
        }
        let id = created.id.parse().map_err(|error| {
            EngineError::failed(format!("read the id of the container `{name}`"), error)
        })?;
        let mut warnings = request.warnings;
        warnings.extend(created.warnings);
        Ok(CreatedContainer { id, warnings })
    }

    async fn start_container(&self, id: &ContainerId) -> Result<(), EngineError> {
        let container = self.our(id).await?;
        self.join_missing(&container).await?;
        let api = self.api().await?;
        let started = api.start_container(id.as_str(), None::<StartContainerOptions>);
        started.await.map_err(|error| {
            let name = shown_name(&container, id);
            match refusal(&error) {
                Some((_, message)) if message.contains("exec format error") => EngineError::Invalid(
                    format!("the image of `{name}` is for another architecture than this device's (exec format error)"),
                ),
                Some((_, message)) if is_stuck_in_runtime(message) => EngineError::StuckInRuntime {
                    name: name.to_owned(),
                    source: message.trim().to_owned().into(),
                },
                Some((404, message)) if message.contains("No such container") => not_found(id),
                Some((404, message)) => EngineError::not_found(format!("something that `{name}` needs ({})", message.trim())),
                _ => self.failed(format!("start `{name}`"), error),
            }
        })
    }

    async fn stop_container(&self, id: &ContainerId, grace: Duration) -> Result<(), EngineError> {
        match self.our(id).await {
            Ok(_) => {}
            Err(EngineError::NotFound { .. }) => return Ok(()),
            Err(error) => return Err(error),
        }
        let options = StopContainerOptions {
            t: Some(whole_seconds(grace)),
            ..Default::default()
        };
        let patience = grace.saturating_add(ANSWER_TIMEOUT);
        let api = self.api().await?.with_timeout(patience);
        match api.stop_container(id.as_str(), Some(options)).await {
            Ok(()) => Ok(()),
            Err(error) if is_not_found(&error) => Ok(()),
            Err(error) => Err(self.failed(format!("stop `{id}`"), error)),
        }
    }

    async fn remove_container(&self, id: &ContainerId) -> Result<(), EngineError> {
        match self.our(id).await {
            Ok(_) => self.remove_by_force(id.as_str()).await,
            Err(EngineError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn rename_container(&self, id: &ContainerId, name: &str) -> Result<(), EngineError> {
        let name = path_part("container's name", name)?;
        let container = self.our(id).await?;
        if own_name(&container).is_some_and(|current| current == name) {
            return Ok(());
        }
        let options = RenameContainerOptions { name: name.into() };
        let api = self.api().await?;
        let renamed = api.rename_container(id.as_str(), options).await;
        renamed.map_err(|error| match refusal(&error) {
            Some((409, _)) => name_taken(name),
            Some((404, _)) => not_found(id),
            _ => self.failed(format!("rename `{id}` to `{name}`"), error),
        })
    }

    async fn environment(&self, id: &ContainerId) -> Result<BTreeMap<String, String>, EngineError> {
        let config = self.inspect(id).await?.config.unwrap_or_default();
        let variables = config.env.unwrap_or_default();
        Ok(variables
            .iter()
            .map(|variable| {
                let (name, value) = variable.split_once('=').unwrap_or((variable, ""));
                (name.to_owned(), value.to_owned())
            })
            .collect())
    }

    async fn logs(
        &self,
        id: &ContainerId,
        from: LogsFrom,
    ) -> Result<BoxStream<'static, Result<LogLine, EngineError>>, EngineError> {
        logs::follow(self, id, from).await
    }
}

impl Docker {
    /// Returns our containers: all, or the one with this id.
    async fn summaries(
        &self,
        id: Option<&ContainerId>,
    ) -> Result<Vec<ContainerSummary>, EngineError> {
        let mut filters = self.ours();
        if let Some(id) = id {
            filters.insert("id".into(), vec![id.to_string()]);
        }
        let options = ListContainersOptions {
            all: true,
            filters: Some(filters),
            ..Default::default()
        };
        let answer = self.api().await?.list_containers(Some(options)).await;
        let mut summaries = answer.map_err(|error| self.failed("list the containers", error))?;
        summaries.retain(|summary| self.covers(summary.labels.clone()));
        Ok(summaries)
    }

    /// Returns the summary of a container, as proof that it is ours: others are not touched.
    async fn our(&self, id: &ContainerId) -> Result<ContainerSummary, EngineError> {
        path_part("container's id", id.as_str())?;
        let mut summaries = self.summaries(Some(id)).await?.into_iter();
        summaries
            .find(|summary| summary.id.as_deref() == Some(id.as_str()))
            .ok_or_else(|| not_found(id))
    }

    async fn remove_by_force(&self, id: &str) -> Result<(), EngineError> {
        let options = RemoveContainerOptions {
            v: true,
            force: true,
            ..Default::default()
        };
        let removed = self.api().await?.remove_container(id, Some(options)).await;
        match removed {
            Ok(()) => Ok(()),
            Err(error) => match refusal(&error) {
                Some((404, _)) => Ok(()),
                Some((409, message)) if message.contains("already in progress") => {
                    self.wait_until_removed(id).await
                }
                _ => Err(self.failed(format!("remove `{id}`"), error)),
            },
        }
    }

    /// Waits while another client removes the container.
    async fn wait_until_removed(&self, id: &str) -> Result<(), EngineError> {
        let options = WaitContainerOptions {
            condition: "removed".into(),
        };
        let mut removal = self.api().await?.wait_container(id, Some(options));
        match removal.next().await {
            // The answer carries the exit code, which bollard treats as a failure if it is not 0.
            None | Some(Ok(_) | Err(bollard::errors::Error::DockerContainerWaitError { .. })) => {
                Ok(())
            }
            Some(Err(error)) if is_not_found(&error) => Ok(()),
            Some(Err(error)) => Err(self.failed(format!("remove `{id}`"), error)),
        }
    }

    /// Returns all details of a container of ours.
    pub(super) async fn inspect(
        &self,
        id: &ContainerId,
    ) -> Result<ContainerInspectResponse, EngineError> {
        let part = path_part("container's id", id.as_str())?;
        let api = self.api().await?;
        let answer = api.inspect_container(part, None::<InspectContainerOptions>);
        let container = answer.await.map_err(|error| match refusal(&error) {
            Some((404, _)) => not_found(id),
            _ => self.failed(format!("inspect `{id}`"), error),
        })?;
        let config = container.config.as_ref();
        if self.covers(config.and_then(|config| config.labels.clone())) {
            Ok(container)
        } else {
            Err(not_found(id))
        }
    }
}

/// Rounds up: a grace period is never shortened.
fn whole_seconds(grace: Duration) -> i32 {
    let seconds = grace.as_millis().div_ceil(1000);
    i32::try_from(seconds).unwrap_or(i32::MAX)
}

fn not_found(id: &ContainerId) -> EngineError {
    EngineError::not_found(format!("the container `{id}`"))
}

fn name_taken(name: &str) -> EngineError {
    EngineError::Conflict {
        what: format!("a container named `{name}`"),
        hint: "remove or rename that container".into(),
    }
}

/// Returns the container's own name. Links add further names, with slashes in them.
fn own_name(summary: &ContainerSummary) -> Option<&str> {
    let mut names = summary.names.iter().flatten();
    names.find_map(|name| {
        let name = name.strip_prefix('/').unwrap_or(name);
        (!name.contains('/')).then_some(name)
    })
}

fn shown_name<'a>(summary: &'a ContainerSummary, id: &'a ContainerId) -> &'a str {
    own_name(summary).unwrap_or(id.as_str())
}

/// Returns `None` if there is no id or no image: then the container is half removed.
fn container(summary: ContainerSummary, image_label: &str) -> Option<Container> {
    let labels = summary.labels.clone().unwrap_or_default();
    let labels: BTreeMap<_, _> = labels.into_iter().collect();
    Some(Container {
        engine: EngineKind::Docker,
        id: summary.id.clone()?.parse().ok()?,
        name: own_name(&summary).unwrap_or_default().to_owned(),
        image: match labels.get(image_label) {
            Some(reference) => reference.clone(),
            None => summary.image.unwrap_or_default(),
        },
        image_id: summary.image_id?.parse().ok()?,
        state: state(summary.state),
        exit_code: summary.status.as_deref().and_then(exit_code),
        health: summary.status.as_deref().and_then(health),
        created_at_ms: summary.created.unwrap_or_default().saturating_mul(1000),
        labels,
    })
}

fn state(state: Option<ContainerSummaryStateEnum>) -> ContainerState {
    use ContainerSummaryStateEnum as Docker;
    match state {
        Some(Docker::RUNNING | Docker::STOPPING) => ContainerState::Running,
        Some(Docker::PAUSED) => ContainerState::Paused,
        Some(Docker::RESTARTING) => ContainerState::Restarting,
        Some(Docker::REMOVING) => ContainerState::Removing,
        Some(Docker::EXITED) => ContainerState::Exited,
        Some(Docker::DEAD) => ContainerState::Dead,
        Some(Docker::CREATED | Docker::EMPTY) | None => ContainerState::Created,
    }
}

/// Reads the exit code. The list has it only in the text for people: `Exited (137) 2 hours ago`. To
/// get it properly, each container would need its own request.
fn exit_code(status: &str) -> Option<i64> {
    let rest = status
        .strip_prefix("Exited (")
        .or_else(|| status.strip_prefix("Restarting ("))?;
    rest.split_once(')')?.0.parse().ok()
}

/// Reads the health, as with the exit code: `Up 3 minutes (healthy)`.
fn health(status: &str) -> Option<ContainerHealth> {
    let rest = status.strip_prefix("Up ")?;
    let (_, health) = rest.strip_suffix(')')?.rsplit_once('(')?;
    match health {
        "health: starting" => Some(ContainerHealth::Starting),
        "healthy" => Some(ContainerHealth::Healthy),
        "unhealthy" => Some(ContainerHealth::Unhealthy),
        _ => None,
    }
}

/// Returns whether Docker's answer to a start says that the container's last start, which something ended at the wrong
/// moment, is still on record in runc or containerd. Docker often does not remove that record
/// (<https://github.com/moby/moby/issues/40613>): then every later start fails in the same way.
fn is_stuck_in_runtime(message: &str) -> bool {
    [
        "container with given ID already exists",
        "container with id exists",
        "id already in use",
    ]
    .iter()
    .any(|reason| message.contains(reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn health_is_read_from_the_status() {
        use ContainerHealth::{Healthy, Starting, Unhealthy};
        for (status, expected) in [
            ("Up 3 minutes", None),
            ("Up 3 minutes (Paused)", None),
            ("Up 3 minutes (healthy)", Some(Healthy)),
            ("Up 2 hours (unhealthy)", Some(Unhealthy)),
            ("Up Less than a second (health: starting)", Some(Starting)),
            ("Exited (0) 5 seconds ago", None),
            ("Up (healthy", None),
            ("", None),
        ] {
            assert_eq!(health(status), expected, "{status}");
        }
    }

    #[test]
    fn exit_codes_are_read_from_the_status() {
        for (status, code) in [
            ("Exited (0) 5 seconds ago", Some(0)),
            ("Exited (137) 2 hours ago", Some(137)),
            ("Restarting (1) Less than a second ago", Some(1)),
            ("Up 3 minutes", None),
            ("Up 3 minutes (healthy)", None),
            ("Created", None),
            ("Dead", None),
            ("Exited (x", None),
            ("", None),
        ] {
            assert_eq!(exit_code(status), code, "{status}");
        }
    }

    #[test]
    fn a_start_that_the_runtime_still_has_on_record_is_recognized() {
        let create = "failed to create shim task: OCI runtime create failed: ";
        for (reason, expected) in [
            (
                "runc create failed: container with given ID already exists: unknown",
                true,
            ),
            ("container with id exists: 521c55b1e6f4: unknown", true),
            ("id already in use", true),
            (
                "runc create failed: read init-p: connection reset by peer: unknown",
                false,
            ),
            (
                "driver failed programming external connectivity: port is already allocated",
                false,
            ),
        ] {
            let answer = format!("{create}{reason}");
            assert_eq!(is_stuck_in_runtime(&answer), expected, "{reason}");
        }
    }
}
