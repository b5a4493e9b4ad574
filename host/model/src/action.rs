//! Actions on services that a caller requests in addition to the target
//! (docs/spec/device.md#actions).

use serde::{Deserialize, Serialize};

use crate::{AppUuid, ServiceName};

/// An action on the services of an app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// The app on which to act.
    pub app: AppUuid,
    /// What to do; it names the service unless it applies to the whole app.
    pub verb: Verb,
    /// Whether to override update locks.
    pub force: bool,
}

/// The possible actions on the services of one app.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verb {
    /// Stops a service and keeps its container, which stays stopped until it is started over the API or the
    /// supervisor restarts.
    Stop(ServiceName),
    /// Starts the container of a service that was stopped.
    Start(ServiceName),
    /// Removes the containers of one service, or of all, and creates them again.
    Restart(Option<ServiceName>),
    /// Removes all containers, networks and volumes of the app, and creates them again.
    Purge,
}

/// How the host is to go down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PowerAction {
    /// The host reboots.
    Reboot,
    /// The host is switched off.
    PowerOff,
}

/// The reason why an action was not, or not completely, carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ActionError {
    /// An update lock is held; nothing was done. The text is the answer to the client.
    #[error("{0}")]
    Locked(String),
    /// A step did not succeed; one sentence that says which, and why.
    #[error("{0}")]
    Failed(String),
}
