//! What a caller asks to be done with services beside the target (docs/spec/device.md#actions).

use serde::{Deserialize, Serialize};

use crate::{AppUuid, ServiceName};

/// What is to be done, and with what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// The app that it is done to.
    pub app: AppUuid,
    /// What is done; the services are named with it where it is not the whole app.
    pub verb: Verb,
    /// Update locks are overridden.
    pub force: bool,
}

/// The actions on the services of one app.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verb {
    /// Stops a service and keeps its container, which stays stopped until it is started over the API
    /// or the supervisor starts anew.
    Stop(ServiceName),
    /// Starts the container of a service that was stopped.
    Start(ServiceName),
    /// Removes the containers of one service, or of all, and makes them anew.
    Restart(Option<ServiceName>),
    /// Removes all containers, networks and volumes of the app, and makes them anew.
    Purge,
}

/// How the host goes down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PowerAction {
    /// The host is started anew.
    Reboot,
    /// The host is switched off.
    PowerOff,
}

/// Why an action was not done, or not wholly.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ActionError {
    /// An update lock is in the way; nothing was done.
    #[error("{0}")]
    Locked(String),
    /// A step did not succeed; one sentence that says which, and why.
    #[error("{0}")]
    Failed(String),
}
