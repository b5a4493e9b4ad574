//! `device local-mode`: whether a device takes its services from its own network rather than from the cloud. It is a
//! variable of the device's configuration, which the fleet may have as well.

use serde::Deserialize;
use serde_json::json;

use super::variables;
use crate::arguments::device::Switch;
use crate::cloud::Cloud;
use crate::failure::{Failure, Result};
use crate::find;
use crate::odata::literal;
use crate::output::Output;

/// The variable, without the prefix that the cloud's vendor has chosen.
const VARIABLE: &str = "SUPERVISOR_LOCAL_MODE";

#[derive(Deserialize)]
struct VariableValue {
    /// Null for users who may not change it, and for everybody if it is secret.
    value: Option<String>,
}

pub(crate) async fn run(
    cloud: &Cloud,
    output: &Output,
    device: &str,
    switch: Option<Switch>,
) -> Result<()> {
    let device = find::device(cloud, device).await?;
    let prefixes = variables::prefixes(cloud).await?;
    let prefix = prefixes.first().map(String::as_str).unwrap_or_default();
    let name = literal(&format!("{prefix}{VARIABLE}"));
    let own = format!("device_config_variable(device={},name={name})", device.id);
    let called = device.name();
    if let Some(switch) = switch {
        let is_on = switch == Switch::On;
        // Off is stored explicitly, because the fleet may have it on.
        cloud
            .put(&own, &json!({ "value": is_on.to_string() }))
            .await?;
        let sentence = if is_on {
            "enters local mode: it does not follow the cloud until you turn local mode off"
        } else {
            "leaves local mode: it follows the cloud again"
        };
        output.done(
            format!("{called} {sentence}"),
            &json!({ "device": device.uuid, "local_mode": is_on }),
        );
        return Ok(());
    }
    let select = "$select=value";
    let mut variable: Option<VariableValue> = cloud.row(&own, select).await?;
    let mut owner = "device";
    if let (None, Some(fleet)) = (&variable, device.fleet) {
        let of_fleet = format!(
            "application_config_variable(application={},name={name})",
            fleet.id
        );
        variable = cloud.row(&of_fleet, select).await?;
        owner = "fleet";
    }
    let (is_on, of) = match variable {
        None => (false, None),
        Some(VariableValue { value: None }) => {
            return Err(Failure::not_allowed(format!(
                "you may not read the variable of the {owner} that decides whether {called} is in local mode"
            ))
            .hint("those who may change the device may read it"));
        }
        Some(VariableValue { value: Some(value) }) => {
            let word = value.to_lowercase();
            // The values that devices interpret as on.
            (matches!(word.as_str(), "1" | "true" | "on"), Some(owner))
        }
    };
    let word = if is_on { "on" } else { "off" };
    output.done(
        match of {
            Some(of) => format!("local mode of {called} is {word} (set on the {of})"),
            None => format!("local mode of {called} is {word}"),
        },
        &json!({ "device": device.uuid, "local_mode": is_on, "of": of }),
    );
    Ok(())
}
