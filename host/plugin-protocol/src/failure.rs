//! The ways in which a call of a plugin can fail, and what is reported to the caller.

use std::time::Duration;

use http::StatusCode;
use plugin_manifest::LIMITS;
use serde::{Deserialize, Serialize};

use crate::Bound;

/// Why a plugin gave no answer to a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Failure {
    /// The guest trapped: it panicked, overflowed its stack, or broke the rules. `what` and `account` are one line
    /// each.
    Trap {
        /// What trapped.
        what: String,
        /// Where it trapped: for the log.
        trace: String,
        /// What the guest wrote about its failure beforehand, or else the function that trapped, in one line that
        /// continues after its name: `panicked: …` or `failed: …`. For its author.
        account: Option<String>,
    },
    /// It died after a request for memory was refused.
    Memory {
        /// Bytes.
        limit: usize,
    },
    /// It used too much CPU time.
    Cpu {
        /// The limit.
        limit: Duration,
    },
    /// It took too long.
    Wall {
        /// The limit.
        limit: Duration,
    },
    /// It passed too much to the host at once: an answer, the arguments of a call, or the message of an error.
    TooMuchData {
        /// How much it may pass, in bytes.
        limit: usize,
        /// Its limit for bodies, in bytes.
        body: usize,
    },
    /// Its answer is invalid.
    BadAnswer(String),
    /// No instance could be created.
    NotReady(String),
    /// The request's body exceeds the plugin's limit: the caller's fault.
    BodyTooLarge {
        /// Bytes.
        limit: usize,
    },
    /// The request's body ended early or took too long: the caller's fault.
    BodyIncomplete(String),
    /// There is no room for the call.
    Busy(Bound),
    /// The process that runs the plugin ended during the call.
    Lost,
}

impl Failure {
    /// Creates the failure of a plugin whose answer, which is no stream, has this many bytes instead of at most `limit`.
    #[must_use]
    pub fn answer_too_large(bytes: usize, limit: usize) -> Failure {
        let range = range_of_bodies();
        Failure::BadAnswer(format!("{bytes} bytes, more than its {limit} ({range})"))
    }

    /// Returns whether the plugin is to blame.
    #[must_use]
    pub fn is_the_plugins(&self) -> bool {
        !matches!(
            self,
            Failure::BodyTooLarge { .. }
                | Failure::BodyIncomplete(_)
                | Failure::Busy(_)
                | Failure::Lost
        )
    }

    /// Returns the status for the caller.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Failure::Trap { .. } | Failure::Memory { .. } | Failure::NotReady(_) => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
            Failure::Cpu { .. } | Failure::Wall { .. } => StatusCode::GATEWAY_TIMEOUT,
            Failure::BadAnswer(_) | Failure::TooMuchData { .. } | Failure::Lost => {
                StatusCode::BAD_GATEWAY
            }
            Failure::BodyTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Failure::BodyIncomplete(_) => StatusCode::BAD_REQUEST,
            Failure::Busy(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// Returns the message for the caller.
    #[must_use]
    pub fn message(&self, plugin: &str) -> String {
        match self {
            // Only what trapped, not where: the trace is for the log.
            Failure::Trap { what, .. } => format!("plugin `{plugin}` failed: {what}"),
            Failure::Memory { limit } => {
                format!(
                    "plugin `{plugin}` needed more than its {} MiB of memory",
                    limit >> 20
                )
            }
            Failure::Cpu { limit } => {
                format!(
                    "plugin `{plugin}` used more than its {} ms of CPU time",
                    limit.as_millis()
                )
            }
            Failure::Wall { limit } => {
                format!(
                    "plugin `{plugin}` did not answer within {} ms",
                    limit.as_millis()
                )
            }
            Failure::TooMuchData { limit, body } => {
                format!(
                    "plugin `{plugin}` passed more than {} KiB to the host at once: the body of its answer may have {body} \
                     bytes ({}), and it must pass less in each call",
                    limit >> 10,
                    range_of_bodies()
                )
            }
            Failure::BadAnswer(what) => format!("plugin `{plugin}` gave a bad answer: {what}"),
            Failure::NotReady(_) => format!("plugin `{plugin}` could not be started"),
            Failure::BodyTooLarge { limit } => {
                format!(
                    "the request's body is larger than the {} KiB that plugin `{plugin}` accepts",
                    limit >> 10
                )
            }
            Failure::BodyIncomplete(what) => format!("the request's body is incomplete: {what}"),
            Failure::Lost => {
                format!("plugin `{plugin}` was interrupted: the process that runs it ended")
            }
            Failure::Busy(bound) => format!("there is no room for plugin `{plugin}` now: {bound}"),
        }
    }
}

/// Returns the text about the limit for bodies: how it is called, and how far it may be raised.
fn range_of_bodies() -> String {
    let key = "body_kib";
    let range = LIMITS.iter().find(|range| range.key == key);
    let most = range.map_or(0, |range| range.most);
    format!("the limit `{key}`, which may be {most} at most")
}
