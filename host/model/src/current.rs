//! Running services, read back from the names and labels of containers: no database is needed to
//! know the owner of a container (docs/spec/device.md#object-labels).

use std::collections::BTreeSet;
use std::time::Duration;

use crate::{
    AppId, AppUuid, BOOT_LABEL, BootId, Branding, CONFIG_DIGEST_LABEL, Commit, Container,
    ContainerHealth, ContainerId, ContainerState, DEPENDS_ON_LABEL, DeviceUuid, EngineImageId,
    EngineKind, ImageId, ReleaseId, STOP_GRACE_PERIOD_LABEL, ServiceId, ServiceKey, ServiceName,
};

/// Prefix of the name of a container that is handing over to its successor (docs/spec/device.md#container-identity).
pub const HANDING_OVER_PREFIX: &str = "old_";

/// One container of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentService {
    /// The app and the service, from the labels.
    pub key: ServiceKey,
    /// The app's number, from the label `app-id`.
    pub app_id: AppId,
    /// The service's number, from the label `service-id`.
    pub id: ServiceId,
    /// The uuid of the device that created it; absent on containers from before this supervisor.
    pub device: Option<DeviceUuid>,
    /// The release, read from the name; absent if the container was renamed.
    pub release: Option<CurrentRelease>,
    /// The engine that has it.
    pub engine: EngineKind,
    /// The engine's id for it.
    pub container: ContainerId,
    /// The current name, with [`HANDING_OVER_PREFIX`] if it has that.
    pub name: String,
    /// The reference that it was created from.
    pub image: String,
    /// The id of the image that it was created from.
    pub engine_image: EngineImageId,
    /// The last state that the engine reported.
    pub state: ContainerState,
    /// The exit code of the last run, once it has ended.
    pub exit_code: Option<i64>,
    /// The result of its health check; absent if it has none, or does not run.
    pub health: Option<ContainerHealth>,
    /// When it was created, in milliseconds since the epoch.
    pub created_at_ms: i64,
    /// The digest of the configuration that it was created from; missing on containers from before
    /// this supervisor, which therefore differ from every target.
    pub digest: Option<String>,
    /// The time that it has to stop: its own grace period, which may differ in the next release.
    pub stop_grace: Duration,
    /// The boot in which it was created, if it must be started in the next.
    pub waits_in_boot: Option<BootId>,
    /// The services of its app that it needs while it runs.
    pub depends_on: BTreeSet<ServiceName>,
}

/// The time that a container has to stop if nothing else is set
/// (docs/spec/device.md#compose-fields).
const STOP_GRACE: Duration = Duration::from_secs(10);

/// The release according to a container's name; renaming changes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentRelease {
    /// The image's number, the first of the three after the service's name.
    pub image_id: ImageId,
    /// The release's number, the second of the three.
    pub id: ReleaseId,
    /// The commit; absent in names from older versions.
    pub commit: Option<Commit>,
}

/// A container that claims to be a supervised service but does not identify it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "container `{name}` is labelled as supervised, but its label `{label}` is missing or unreadable"
)]
pub struct UnreadableContainer {
    /// The engine's id for it.
    pub container: ContainerId,
    /// Its name, without a leading slash.
    pub name: String,
    /// The label in full, with its namespace.
    pub label: String,
}

impl CurrentService {
    /// Reads a container's labels and name.
    ///
    /// # Errors
    /// [`UnreadableContainer`] if a label that identifies its service is missing or unreadable.
    pub fn from_container(
        container: &Container,
        branding: &Branding,
    ) -> Result<CurrentService, UnreadableContainer> {
        let service: ServiceName = label(container, branding, "service-name")?;
        Ok(CurrentService {
            app_id: label(container, branding, "app-id")?,
            id: label(container, branding, "service-id")?,
            device: label(container, branding, "device-uuid").ok(),
            release: CurrentRelease::from_name(&container.name, &service),
            engine: container.engine,
            container: container.id.clone(),
            name: container.name.clone(),
            image: container.image.clone(),
            engine_image: container.image_id.clone(),
            state: container.state,
            exit_code: container.exit_code,
            health: container.health,
            created_at_ms: container.created_at_ms,
            digest: label(container, branding, CONFIG_DIGEST_LABEL).ok(),
            stop_grace: label(container, branding, STOP_GRACE_PERIOD_LABEL)
                .map_or(STOP_GRACE, Duration::from_secs),
            waits_in_boot: label(container, branding, BOOT_LABEL).ok(),
            depends_on: depends_on(container, branding),
            key: ServiceKey {
                app: label::<AppUuid>(container, branding, "app-uuid")?,
                service,
            },
        })
    }

    /// Returns whether it runs, or is about to run again.
    #[must_use]
    pub fn runs(&self) -> bool {
        matches!(
            self.state,
            ContainerState::Running | ContainerState::Restarting | ContainerState::Paused
        )
    }

    /// Returns whether it must be stopped before `other`: it runs and depends on it.
    #[must_use]
    pub fn stops_before(&self, other: &ServiceKey) -> bool {
        self.runs()
            && self.key.app == other.app
            && self.key.service != other.service
            && self.depends_on.contains(&other.service)
    }

    /// Returns whether it was renamed to make room for its successor.
    #[must_use]
    pub fn is_handing_over(&self) -> bool {
        self.name
            .strip_prefix(HANDING_OVER_PREFIX)
            // A service itself may be called `old_…`.
            .is_some_and(|rest| rest.starts_with(&format!("{}_", self.key.service)))
    }
}

impl CurrentRelease {
    /// Parses `[old_]<service>_<imageId>_<releaseId>[_<commit>]`. If the name does not begin with
    /// the service's, the first match of `_(\d+)_(\d+)(?:_(.*?))?$` counts.
    fn from_name(name: &str, service: &ServiceName) -> Option<CurrentRelease> {
        let bare = name.strip_prefix(HANDING_OVER_PREFIX).unwrap_or(name);
        // By the service's name first: digits may be part of it (`web_1_2` in `web_1_2_30_40_c0ffee`).
        for whole in [name, bare] {
            if let Some(rest) = whole.strip_prefix(service.as_str())
                && let Some(found) = Self::from_suffix(rest)
            {
                return Some(found);
            }
        }
        name.match_indices('_')
            .find_map(|(at, _)| Self::from_suffix(&name[at..]))
    }

    fn from_suffix(suffix: &str) -> Option<CurrentRelease> {
        let mut parts = suffix.strip_prefix('_')?.splitn(3, '_');
        Some(CurrentRelease {
            image_id: parts.next()?.parse().ok()?,
            id: parts.next()?.parse().ok()?,
            commit: parts.next().and_then(|commit| commit.parse().ok()),
        })
    }
}

/// Returns the dependencies; invalid service names are left out.
fn depends_on(container: &Container, branding: &Branding) -> BTreeSet<ServiceName> {
    let names = container.labels.get(&branding.label(DEPENDS_ON_LABEL));
    let names = names.iter().flat_map(|names| names.split(','));
    names.filter_map(|name| name.parse().ok()).collect()
}

fn label<T: std::str::FromStr>(
    container: &Container,
    branding: &Branding,
    name: &str,
) -> Result<T, UnreadableContainer> {
    let label = branding.label(name);
    container
        .labels
        .get(&label)
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| UnreadableContainer {
            container: container.id.clone(),
            name: container.name.clone(),
            label,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn release(name: &str, service: &str) -> Option<(u64, u64, Option<String>)> {
        CurrentRelease::from_name(name, &service.parse().unwrap())
            .map(|found| (found.image_id.0, found.id.0, found.commit.map(String::from)))
    }

    fn container(name: &str, labels: &[(&str, &str)]) -> Container {
        Container {
            engine: EngineKind::Docker,
            id: "abc".parse().unwrap(),
            name: name.into(),
            labels: labels
                .iter()
                .map(|(key, value)| (format!("io.platform.{key}"), (*value).to_owned()))
                .collect(),
            image: "web:1".into(),
            image_id: "sha256:ab".parse().unwrap(),
            state: ContainerState::Running,
            exit_code: None,
            health: None,
            created_at_ms: 0,
        }
    }

    #[test]
    fn names_are_read_back() {
        for (name, service, expected) in [
            ("web_12_3_c0ffee", "web", Some((12, 3, Some("c0ffee")))),
            ("old_web_12_3_c0ffee", "web", Some((12, 3, Some("c0ffee")))),
            ("web_12_3", "web", Some((12, 3, None))),
            ("web_12_3_a_b", "web", Some((12, 3, Some("a_b")))),
            (
                "web_1_2_30_40_c0ffee",
                "web_1_2",
                Some((30, 40, Some("c0ffee"))),
            ),
            ("old_x_12_3_c", "old_x", Some((12, 3, Some("c")))),
            ("renamed_12_3_c0ffee", "web", Some((12, 3, Some("c0ffee")))),
            ("web_12", "web", None),
            ("web_12_", "web", None),
            ("web_12_x_c0ffee", "web", None),
            ("web", "web", None),
            ("", "web", None),
        ] {
            assert_eq!(
                release(name, service),
                expected.map(|(image, id, commit)| (image, id, commit.map(str::to_owned))),
                "{name}"
            );
        }
    }

    #[test]
    fn a_container_without_an_owner_is_named() {
        let labels = [
            ("service-name", "web"),
            ("service-id", "7"),
            ("app-id", "1"),
            ("app-uuid", "1"),
        ];
        let whole = container("web_1_2_c", &labels);
        let read = CurrentService::from_container(&whole, &Branding::default()).unwrap();
        assert_eq!(
            (read.id, read.digest, read.device),
            (ServiceId(7), None, None)
        );

        for missing in 0..labels.len() {
            let mut fewer = labels.to_vec();
            let (name, _) = fewer.remove(missing);
            let refused = CurrentService::from_container(
                &container("web_1_2_c", &fewer),
                &Branding::default(),
            );
            assert_eq!(refused.unwrap_err().label, format!("io.platform.{name}"));
        }
    }

    #[test]
    fn a_hand_over_is_distinguished_from_a_service_called_old() {
        let labels = |service| {
            [
                ("service-name", service),
                ("service-id", "7"),
                ("app-id", "1"),
                ("app-uuid", "1"),
            ]
        };
        for (name, service, expected) in [
            ("old_web_1_2_c", "web", true),
            ("web_1_2_c", "web", false),
            ("old_x_1_2_c", "old_x", false),
            ("old_old_x_1_2_c", "old_x", true),
        ] {
            let read = CurrentService::from_container(
                &container(name, &labels(service)),
                &Branding::default(),
            );
            assert_eq!(read.unwrap().is_handing_over(), expected, "{name}");
        }
    }
}
