//! Lines of `GET /v2/local/logs`.

use model::{ContainerId, ServiceId, ServiceName};
use schemars::JsonSchema;
use serde::Serialize;

// docs/spec/device.md#local-logs, not in the docstring: that is the description that clients read.
/// One line of `GET /v2/local/logs`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogEvent {
    /// The line, without its end.
    pub message: String,
    /// Milliseconds since the epoch; only the greeting has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<i64>,
    /// Missing in a line of the supervisor itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_name: Option<ServiceName>,
    /// The number of that service in the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_id: Option<ServiceId>,
    /// Whether the service printed it to its standard error output.
    #[serde(rename = "isStdErr", skip_serializing_if = "is_false")]
    pub is_stderr: bool,
    /// Whether the supervisor itself printed the line.
    #[serde(skip_serializing_if = "is_false")]
    pub is_system: bool,
    /// The container that printed it. Not sent to clients: they know services, not containers.
    #[serde(skip)]
    pub container: Option<ContainerId>,
}

impl LogEvent {
    /// Returns a line of the supervisor's own.
    #[must_use]
    pub fn system(message: impl Into<String>, timestamp: Option<i64>) -> Self {
        LogEvent {
            message: message.into(),
            timestamp,
            service_name: None,
            service_id: None,
            is_stderr: false,
            is_system: true,
            container: None,
        }
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
fn is_false(value: &bool) -> bool {
    !*value
}
