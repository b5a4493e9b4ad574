//! What is reported to callers and the log about a call that failed.

use http::{Response, StatusCode, header};
use plugin_manifest::LIMITS;
use plugin_protocol::Failure;
use plugin_protocol::text::{LONGEST, one_line};

use crate::body::{self, Body};

/// The most of a trace that is logged, in bytes.
const TRACE: usize = 1 << 10;

/// Returns the message for the plugin's author: it includes what the plugin wrote about its failure, and which limit
/// may be raised and how far.
pub(crate) fn for_author(failure: &Failure, plugin: &str) -> String {
    let key = match failure {
        Failure::Trap {
            account: Some(account),
            ..
        } => return format!("plugin `{plugin}` {account}"),
        Failure::Memory { .. } => "memory_mib",
        Failure::Cpu { .. } => "cpu_ms",
        Failure::Wall { .. } => "wall_ms",
        Failure::BodyTooLarge { .. } => "body_kib",
        Failure::NotReady(what) => {
            let message = failure.message(plugin);
            return format!("{message}: {}", one_line(what, LONGEST));
        }
        _ => return failure.message(plugin),
    };
    let message = failure.message(plugin);
    match LIMITS.iter().find(|range| range.key == key) {
        Some(range) => format!(
            "{message} (the limit `{key}`, which may be {} at most)",
            range.most
        ),
        None => message,
    }
}

/// Returns the answer for the caller; in developer mode, the one for the plugin's author.
pub(crate) fn failed_response(
    failure: &Failure,
    plugin: &str,
    is_developers: bool,
) -> Response<Body> {
    let message = if is_developers {
        for_author(failure, plugin)
    } else {
        failure.message(plugin)
    };
    let mut response = failed(failure.status(), &message);
    if matches!(failure, Failure::Busy(_)) {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, http::HeaderValue::from_static("1"));
    }
    response
}

/// Returns whether the line about it is only for debugging: the caller's request is to blame.
pub(crate) fn is_for_debugging(failure: &Failure) -> bool {
    matches!(
        failure,
        Failure::BodyTooLarge { .. } | Failure::BodyIncomplete(_)
    )
}

/// The target of the lines of the log in which `supervisor-plugin run` shows failures, in place of those for a device's
/// owner: in the author's words, and without a trace.
pub const FAILURES_FOR_AUTHORS: &str = "plugins::failure::for_author";

/// Writes it to the log, with the trace if there is one.
pub(crate) fn log(failure: &Failure, plugin: &str) {
    let message = for_author(failure, plugin);
    if !is_for_debugging(failure) {
        tracing::debug!(target: FAILURES_FOR_AUTHORS, plugin, "{message}");
    }
    match failure {
        // The plugin's output about a panic is already in the log.
        Failure::Trap { trace, .. } => {
            let message = failure.message(plugin);
            tracing::warn!(plugin, "{message}: {}", one_line(trace, TRACE));
        }
        Failure::Busy(_) => tracing::info!(plugin, "{message}"),
        failure if is_for_debugging(failure) => tracing::debug!(plugin, "{message}"),
        _ => tracing::warn!(plugin, "{message}"),
    }
}

/// Returns `{"status":"failed","message":...}`, the form of all failures of the API.
pub(crate) fn failed(status: StatusCode, message: &str) -> Response<Body> {
    let body = serde_json::json!({ "status": "failed", "message": message }).to_string();
    let mut response = Response::new(body::whole(body.into_bytes()));
    *response.status_mut() = status;
    let json = http::HeaderValue::from_static("application/json; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}
