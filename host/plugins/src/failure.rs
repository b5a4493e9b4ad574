//! The ways in which a call fails, and what its caller and the log get to know.

use std::time::Duration;

use http::{Response, StatusCode, header};
use wasmtime::Trap;

use crate::Body;
use crate::bounds::Bound;
use crate::guest::Guest;
use crate::limits::Limits;
use crate::text::{LONGEST, one_line};

/// The most of a trace that is logged, in bytes. The names of functions in it are the plugin's own words.
const TRACE: usize = 1 << 10;

/// Why a call has no answer of the plugin's.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The guest trapped: it panicked, overflowed its stack, or broke the rules. Both are one line each.
    Trap { what: String, trace: String },
    /// It died after it was refused memory.
    Memory { limit: usize },
    /// It used too much CPU time.
    Cpu { limit: Duration },
    /// It took too long.
    Wall { limit: Duration },
    /// Its answer is no answer.
    BadAnswer(String),
    /// No instance could be made.
    NotReady(String),
    /// The request's body is over the plugin's limit: the caller's fault.
    BodyTooLarge { limit: usize },
    /// The request's body broke off or took too long: the caller's fault.
    BodyIncomplete(String),
    /// There is no room for the call.
    Busy(Bound),
}

impl Failure {
    /// From what wasmtime says of a call in a store with this data.
    pub(crate) fn of(
        error: &wasmtime::Error,
        guest: &Guest,
        limits: &Limits,
        cpu_exceeded: bool,
    ) -> Failure {
        let trap = error.downcast_ref::<Trap>().copied();
        if cpu_exceeded && matches!(trap, Some(Trap::Interrupt)) {
            return Failure::Cpu { limit: limits.cpu };
        }
        if let Some(bound) = guest.memory.no_room {
            return Failure::Busy(bound);
        }
        if guest.memory.exceeded {
            return Failure::Memory {
                limit: limits.memory,
            };
        }
        trapped(error)
    }

    /// Whether the plugin is to blame.
    pub(crate) fn is_the_plugins(&self) -> bool {
        !matches!(
            self,
            Failure::BodyTooLarge { .. } | Failure::BodyIncomplete(_) | Failure::Busy(_)
        )
    }

    /// The status that the caller gets.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Failure::Trap { .. } | Failure::Memory { .. } | Failure::NotReady(_) => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
            Failure::Cpu { .. } | Failure::Wall { .. } => StatusCode::GATEWAY_TIMEOUT,
            Failure::BadAnswer(_) => StatusCode::BAD_GATEWAY,
            Failure::BodyTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Failure::BodyIncomplete(_) => StatusCode::BAD_REQUEST,
            Failure::Busy(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// What the caller gets to know.
    pub(crate) fn message(&self, plugin: &str) -> String {
        match self {
            // What trapped, and not where: the trace is for the log.
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
            Failure::BadAnswer(what) => format!("plugin `{plugin}` gave a bad answer: {what}"),
            Failure::NotReady(_) => format!("plugin `{plugin}` could not be started"),
            Failure::BodyTooLarge { limit } => {
                format!(
                    "the request's body is larger than the {} KiB that plugin `{plugin}` takes",
                    limit >> 10
                )
            }
            Failure::BodyIncomplete(what) => format!("the request's body is incomplete: {what}"),
            Failure::Busy(bound) => format!("there is no room for plugin `{plugin}` now: {bound}"),
        }
    }

    /// The answer that the caller gets.
    pub(crate) fn response(&self, plugin: &str) -> Response<Body> {
        let mut response = failed(self.status(), &self.message(plugin));
        if matches!(self, Failure::Busy(_)) {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, http::HeaderValue::from_static("1"));
        }
        response
    }

    /// Writes it to the log, with the trace where there is one.
    pub(crate) fn log(&self, plugin: &str) {
        let message = self.message(plugin);
        match self {
            Failure::Trap { trace, .. } => tracing::warn!(plugin, "{message}: {trace}"),
            Failure::NotReady(what) => {
                tracing::warn!(plugin, "{message}: {}", one_line(what, LONGEST));
            }
            Failure::Busy(_) => tracing::info!(plugin, "{message}"),
            failure if failure.is_the_plugins() => tracing::warn!(plugin, "{message}"),
            _ => tracing::debug!(plugin, "{message}"),
        }
    }
}

/// What wasmtime says of a trap holds names that the plugin chose.
fn trapped(error: &wasmtime::Error) -> Failure {
    let what = match error.downcast_ref::<Trap>() {
        Some(trap) => trap.to_string(),
        None => error.root_cause().to_string(),
    };
    Failure::Trap {
        what: one_line(&what, LONGEST),
        trace: one_line(&format!("{error:?}"), TRACE),
    }
}

/// `{"status":"failed","message":...}`, as all of the API fails.
pub(crate) fn failed(status: StatusCode, message: &str) -> Response<Body> {
    let body = serde_json::json!({ "status": "failed", "message": message }).to_string();
    let mut response = Response::new(Body::from(body.into_bytes()));
    *response.status_mut() = status;
    let json = http::HeaderValue::from_static("application/json; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// An error with its causes, in one line but for what a cause spreads over more.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(cause.to_string().trim_end());
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m5_a_trap_and_its_trace_are_one_short_line_each() {
        let named = "f\nINFO access: POST /v1/reboot status=202 ".repeat(1000);
        let error = wasmtime::Error::msg(named.clone()).context(named);
        let Failure::Trap { what, trace } = trapped(&error) else {
            panic!("it is a trap");
        };
        for (text, longest) in [(what, LONGEST), (trace, TRACE)] {
            assert!(text.len() <= longest + 3, "{}", text.len());
            assert!(!text.contains('\n'), "{text}");
        }
    }
}
