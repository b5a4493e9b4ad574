//! The access rights of service keys. Each key covers its own app; the device's owner decides whether it also covers
//! the device as a whole: rebooting, setting the proxy, reading the journal.

use http::Method;
use serde::{Deserialize, Serialize};

use crate::answer::Failure;
use crate::caller::{Caller, KeyScope};

/// What the key of a service gives access to. Keys of the device give access to everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServiceKeys {
    /// Its own app and the device, like the reference system in this field.
    #[default]
    Device,
    /// Its own app, and what the supervisor itself reports about the device; no endpoint of a plugin.
    OwnApp,
}

/// These name their app in the body, and refuse an app that the key does not cover.
const WITH_THE_APP_IN_THE_BODY: [&str; 2] = ["/v1/restart", "/v1/purge"];
/// A GET that removes volumes, of all apps.
const CLEANS_UP: &str = "/v2/cleanup-volumes";
/// Targets and log lines of all apps.
const LOCAL_MODE: &str = "/v2/local/";

impl ServiceKeys {
    /// Refuses a caller that may not use the core route with this method and path; `None` stands for a plugin's route.
    ///
    /// # Errors
    /// If the setting forbids it; the message names the setting.
    pub(crate) fn check(
        self,
        caller: &Caller,
        route: Option<(&Method, &str)>,
    ) -> Result<(), Failure> {
        let is_of_a_service = matches!(caller.scope, KeyScope::App(_));
        match self {
            ServiceKeys::OwnApp if is_of_a_service && !route.is_some_and(is_of_one_app) => {
                Err(Failure::Refused(
                    http::StatusCode::UNAUTHORIZED,
                    "this endpoint concerns the whole device, and `service_keys` in the supervisor's configuration limits the keys of services to their own app"
                        .into(),
                ))
            }
            _ => Ok(()),
        }
    }
}

/// Returns whether the route affects only the key's app.
fn is_of_one_app((method, path): (&Method, &str)) -> bool {
    let is_read = *method == Method::GET && path != CLEANS_UP && !path.starts_with(LOCAL_MODE);
    is_read || path.contains("/:appId") || WITH_THE_APP_IN_THE_BODY.contains(&path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core_routes;

    /// Any new route that changes something must be classified here.
    #[test]
    fn an_apps_key_does_not_open_routes_that_change_the_device() {
        let of_the_device: Vec<String> = core_routes()
            .filter(|route| !is_of_one_app((&route.method, route.path)))
            .map(|route| format!("{} {}", route.method, route.path))
            .collect();
        assert_eq!(
            of_the_device,
            [
                "POST /v1/blink",
                "POST /v1/regenerate-api-key",
                "POST /v1/reboot",
                "POST /v1/shutdown",
                "POST /v1/update",
                "GET /v2/cleanup-volumes",
                "GET /v2/local/target-state",
                "POST /v2/local/target-state",
                "GET /v2/local/logs",
                "PUT /v3/plugins/:name",
                "DELETE /v3/plugins/:name",
            ]
        );
    }
}
