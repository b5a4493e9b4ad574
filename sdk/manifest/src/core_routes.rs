//! The routes that the supervisor answers itself, and that plugins therefore cannot have.

use http::Method;

use crate::Pattern;

/// Method and path of each of the supervisor's own routes. A test of the API compares this list with its
/// routes.
pub const CORE_ROUTES: &[(&str, &str)] = &[
    ("GET", "/ping"),
    ("GET", "/metrics"),
    ("GET", "/v1/healthy"),
    ("GET", "/v1/device"),
    ("POST", "/v1/blink"),
    ("POST", "/v1/regenerate-api-key"),
    ("POST", "/v1/restart"),
    ("POST", "/v1/purge"),
    ("GET", "/v1/apps/:appId"),
    ("POST", "/v1/apps/:appId/stop"),
    ("POST", "/v1/apps/:appId/start"),
    ("POST", "/v1/reboot"),
    ("POST", "/v1/shutdown"),
    ("POST", "/v1/update"),
    ("GET", "/v2/version"),
    ("GET", "/v2/state/status"),
    ("GET", "/v2/applications/state"),
    ("GET", "/v2/applications/:appId/state"),
    ("GET", "/v2/containerId"),
    ("POST", "/v2/applications/:appId/restart-service"),
    ("POST", "/v2/applications/:appId/stop-service"),
    ("POST", "/v2/applications/:appId/start-service"),
    ("POST", "/v2/applications/:appId/restart"),
    ("POST", "/v2/applications/:appId/purge"),
    ("GET", "/v2/cleanup-volumes"),
    ("GET", "/v2/local/target-state"),
    ("POST", "/v2/local/target-state"),
    ("GET", "/v2/local/logs"),
    ("GET", "/v3/events"),
    ("GET", "/v3/locks"),
    ("PUT", "/v3/locks/:appId/:service"),
    ("DELETE", "/v3/locks/:appId/:service"),
    ("GET", "/v3/openapi.json"),
    ("GET", "/v3/plan"),
    ("GET", "/v3/plugins"),
    ("GET", "/v3/plugins/:name/log"),
    ("PUT", "/v3/plugins/:name"),
    ("DELETE", "/v3/plugins/:name"),
];

/// Returns the supervisor's own route from which a plugin's route would take requests, if there is one.
#[must_use]
pub fn core_route(method: &Method, pattern: &Pattern) -> Option<(&'static str, &'static str)> {
    let overlaps = |path| Pattern::parse(path).is_ok_and(|core| core.overlaps(pattern));
    CORE_ROUTES
        .iter()
        .copied()
        .find(|(core, path)| *core == method.as_str() && overlaps(path))
}
