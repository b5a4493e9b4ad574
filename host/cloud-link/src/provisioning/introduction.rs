//! What a device sends to a new cloud: its configuration, so that the cloud's first target does not undo it, its name,
//! and the release that it is to stay on.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use http::Method;
use model::config_variables::{VariableKind, flag, variable};
use serde_json::{Value, json};
use store::Store;

use super::{IntroductionRecord, ProvisioningError, ProvisioningTask};
use crate::blocking::blocking;
use crate::client::{CloudError, DATA_API, TargetAnswer};
use crate::identity::text;

/// An intent of this kind, with the cloud's address as its key, records that the cloud has received this.
const INTENT: &str = "cloud-introduced";
/// Keys of config.json: the device's first name, and the commit of the release that it is to stay on.
const NAME: &str = "initialDeviceName";
const PIN: &str = "pinDevice";

impl ProvisioningTask {
    /// Runs once for each cloud.
    pub(super) async fn introduce(&self) -> Result<(), ProvisioningError> {
        let endpoint = self.client.identity().endpoint.clone();
        let (introduced, key) = (Arc::clone(&self.introduced), endpoint.clone());
        let is_introduced = blocking(move || introduced.is_to(&key)).await;
        if is_introduced.map_err(ProvisioningError::Store)? {
            return Ok(());
        }
        let name = text(&self.read().await?, NAME)?.map(str::to_owned);
        let current = self.introduction.configuration().await;
        if !current.is_empty() {
            self.send_configuration(&current).await?;
        }
        if let Some(name) = name {
            let result = self.patch_device(&json!({ "device_name": name })).await;
            unless_rejected("the device's initial name", result).map_err(|error| {
                ProvisioningError::Cloud("send the device's name to the cloud", error)
            })?;
        }
        let introduced = Arc::clone(&self.introduced);
        let noted = blocking(move || introduced.put(&endpoint)).await;
        noted.map_err(ProvisioningError::Store)
    }

    async fn send_configuration(
        &self,
        current: &BTreeMap<String, String>,
    ) -> Result<(), ProvisioningError> {
        let failed = |error| {
            ProvisioningError::Cloud("send this device's configuration to the cloud", error)
        };
        let fetched = self.client.target(None, self.limit()).await;
        let TargetAnswer::New { body, .. } = fetched.map_err(failed)? else {
            return Err(failed(CloudError::Shape("a target")));
        };
        let prefix = self.introduction.prefix();
        let config = body[self.client.uuid().as_str()]["config"].as_object();
        let in_target: Vec<&str> = config
            .into_iter()
            .flatten()
            .map(|(name, _)| name.strip_prefix(&prefix).unwrap_or(name))
            .collect();
        let own = self.client.identity().device_key();
        let path = format!("{DATA_API}/device_config_variable");
        for (name, value) in to_send(current, &in_target) {
            let name = format!("{prefix}{name}");
            let body = json!({ "device": self.client.device_id(), "name": name, "value": value });
            let answer = self.send(&own, Method::POST, &path, &body).await;
            unless_rejected(&name, answer.map(drop)).map_err(failed)?;
        }
        Ok(())
    }

    /// Pins the device at the cloud to the release whose commit is in config.json.
    pub(super) async fn pin(&self) -> Result<(), ProvisioningError> {
        let config = self.read().await?;
        let commit = match config.get(PIN) {
            None | Some(Value::Null) => return Ok(()),
            Some(Value::Object(pin)) => pin.get("commit").and_then(Value::as_str),
            Some(_) => text(&config, PIN).ok().flatten(),
        };
        // The commit becomes part of a filter.
        let plain = |commit: &&str| {
            (1..=64).contains(&commit.len())
                && commit.bytes().all(|byte| byte.is_ascii_alphanumeric())
        };
        let Some(commit) = commit.filter(plain) else {
            tracing::error!(
                key = PIN,
                "`{PIN}` in config.json is not a commit and is ignored"
            );
            return self.unpin().await;
        };
        let failed = |error| ProvisioningError::Cloud("pin this device to its release", error);
        let filter = format!("commit eq '{commit}' and status eq 'success'");
        let own = self.client.identity().device_key();
        let rows = self.rows("release", &filter, &own).await.map_err(failed)?;
        let Some(release) = rows.first().and_then(|row| row.get("id")?.as_u64()) else {
            return Err(failed(CloudError::Invalid(format!(
                "the cloud has no release `{commit}` for this device"
            ))));
        };
        let body = json!({ "is_pinned_on__release": release });
        let pinned = self.patch_device(&body).await;
        unless_rejected("the release to stay on", pinned).map_err(failed)?;
        self.unpin().await
    }

    async fn unpin(&self) -> Result<(), ProvisioningError> {
        self.write(|config| {
            config.remove(PIN);
        })
        .await
    }
}

impl IntroductionRecord for Store {
    fn is_to(&self, endpoint: &str) -> Result<bool, Box<dyn Error + Send + Sync>> {
        let intents = self.intents()?;
        Ok(intents
            .iter()
            .any(|intent| intent.kind == INTENT && intent.key == endpoint))
    }

    fn put(&self, endpoint: &str) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(self.put_intent(INTENT, endpoint, &Value::Bool(true))?)
    }
}

/// Drops data that the cloud rejects: the first target must not be delayed for ever because a variable cannot be set.
/// If the device's key is refused, the error is kept: the target would be refused as well.
fn unless_rejected(what: &str, answer: Result<(), CloudError>) -> Result<(), CloudError> {
    match answer {
        Err(error) if error.is_rejection() => {
            tracing::error!(
                data = what,
                "the cloud rejected {what}, which is dropped: {error}"
            );
            Ok(())
        }
        answer => answer,
    }
}

/// Returns the variables to send to the cloud: those that differ from their default and are not in the target. A device
/// that was set up in local mode, or without a connection to the cloud, does not stay so.
fn to_send(current: &BTreeMap<String, String>, in_target: &[&str]) -> Vec<(String, String)> {
    let mut variables = Vec::new();
    for (name, value) in current {
        let is_default = variable(name).is_some_and(|variable| match variable.kind {
            VariableKind::Bool => flag(current, name) == flag(&BTreeMap::new(), name),
            VariableKind::Int(..)
            | VariableKind::Word(_)
            | VariableKind::OsVersion
            | VariableKind::OsBundle => value == variable.default,
        });
        if is_default || in_target.contains(&name.as_str()) {
            continue;
        }
        let value = match name.as_str() {
            "SUPERVISOR_LOCAL_MODE" => "false",
            "SUPERVISOR_VPN_CONTROL" => "true",
            _ => value,
        };
        variables.push((name.clone(), value.to_owned()));
    }
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_differ_from_their_defaults_and_the_target_are_reported() {
        let current = [
            ("HOST_CONFIG_gpu_mem", "16"),
            ("HOST_CONFIG_dtparam", "\"i2c_arm=on\""),
            ("SUPERVISOR_PERSISTENT_LOGGING", "true"),
            ("SUPERVISOR_DELTA", "0"),
            ("SUPERVISOR_POLL_INTERVAL", "900000"),
            ("SUPERVISOR_LOCAL_MODE", "1"),
            ("SUPERVISOR_VPN_CONTROL", "false"),
        ];
        let current = current.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let variables = to_send(&current.into(), &["HOST_CONFIG_gpu_mem"]);
        let variables: Vec<_> = variables
            .iter()
            .map(|(n, v)| (n.as_str(), v.as_str()))
            .collect();
        assert_eq!(
            variables,
            [
                ("HOST_CONFIG_dtparam", "\"i2c_arm=on\""),
                ("SUPERVISOR_LOCAL_MODE", "false"),
                ("SUPERVISOR_PERSISTENT_LOGGING", "true"),
                ("SUPERVISOR_VPN_CONTROL", "true"),
            ]
        );
    }
}
