//! `GET /v2/device/vpn`: whether the host's VPN is on, and whether its tunnel is up (docs/spec/device.md#vpn).
//!
//! It is on unless its unit is stopped, and up while the VPN program keeps the file `active` in its status
//! folder. Configuration (`[plugins.vpn]`): `unit`, by default `openvpn.service`; the policy must grant the
//! same unit, and sets the path of the folder.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use supervisor_sdk::{Error, Json, config, plugin, units};

plugin! {
    capabilities: {
        units => "reads the state of the VPN's unit",
        files => "reads whether the VPN reports that its tunnel is up",
    }
    routes: { GET "/v2/device/vpn" => vpn }
    openapi: "openapi.json"
    // The service manager has its own time limit for this.
    limits: { wall_ms: 25000 }
}

/// The file in the status folder, as set by the policy; it does not exist on a host without a VPN.
const ACTIVE: &str = "/vpn-status/active";

#[derive(Deserialize)]
struct Configuration {
    #[serde(default = "default_unit")]
    unit: String,
}

fn default_unit() -> String {
    "openvpn.service".to_owned()
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Answer {
    status: &'static str,
    vpn: Vpn,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Vpn {
    enabled: bool,
    connected: bool,
}

async fn vpn() -> Result<Json<Answer>, Error> {
    let Configuration { unit } = config::read()?;
    let state = units::state(&unit).await.map_err(|error| {
        Error::unavailable(format_args!("failed to read the state of the VPN: {error}"))
    })?;
    Ok(Json(Answer {
        status: "success",
        vpn: Vpn {
            enabled: is_enabled(&state),
            connected: is_connected(Path::new(ACTIVE)).map_err(|error| {
                Error::unavailable(format_args!("failed to read the VPN's status: {error}"))
            })?,
        },
    }))
}

fn is_enabled(state: &units::State) -> bool {
    state.load == "loaded" && !["inactive", "deactivating"].contains(&state.active.as_str())
}

fn is_connected(active: &Path) -> io::Result<bool> {
    match active.metadata() {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_on_unless_its_unit_is_stopped_or_missing() {
        for (load, active, expected) in [
            ("loaded", "active", true),
            ("loaded", "activating", true),
            ("loaded", "reloading", true),
            ("loaded", "failed", true),
            ("loaded", "inactive", false),
            ("loaded", "deactivating", false),
            ("not-found", "inactive", false),
            ("masked", "active", false),
        ] {
            let state = units::State {
                load: load.to_owned(),
                active: active.to_owned(),
                sub: "any".to_owned(),
            };
            assert_eq!(is_enabled(&state), expected, "{load} {active}");
        }
    }

    #[test]
    fn it_is_up_while_the_file_is_there() {
        let folder = std::env::temp_dir();
        assert!(is_connected(&folder).unwrap());
        assert!(!is_connected(&folder.join("no-such-file-here")).unwrap());
    }

    #[test]
    fn the_description_has_the_schemas_of_what_is_answered() {
        let mut schemas = supervisor_testing::schemas();
        schemas.subschema_for::<Answer>();
        supervisor_testing::assert_described(include_str!("../openapi.json"), schemas);
    }
}
