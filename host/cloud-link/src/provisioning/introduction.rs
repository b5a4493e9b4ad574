//! What a device tells a cloud that it is new to: how it is configured, so that the cloud's first target does
//! not undo it, its name, and the release that it is to stay on.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use http::{Method, StatusCode};
use model::config_variables::{VariableKind, flag, variable};
use serde_json::{Value, json};
use store::Store;

use super::{IntroductionRecord, ProvisioningError, ProvisioningTask};
use crate::client::{CloudError, DATA_API, TargetAnswer};
use crate::identity::text;

/// An intent of this kind, with the cloud's address as its key, says that the cloud has been told.
const INTENT: &str = "cloud-introduced";
/// Keys of config.json: the device's first name, and the commit of the release that it is to stay on.
const NAME: &str = "initialDeviceName";
const PIN: &str = "pinDevice";

impl ProvisioningTask {
    /// Once for each cloud.
    pub(super) async fn introduce(&self) -> Result<(), ProvisioningError> {
        let endpoint = self.client.identity().endpoint.clone();
        let key = endpoint.clone();
        if self.kept(move |introduced| introduced.is_to(&key)).await? {
            return Ok(());
        }
        let held = self.read().await?;
        let name = text(&held, NAME)?.map(str::to_owned);
        let current = self.newcomer.configuration().await;
        if !current.is_empty() {
            self.tell_configuration(&current).await?;
        }
        if let Some(name) = name {
            let result = self.patch_device(&json!({ "device_name": name })).await;
            unless_final("the device's initial name", result).map_err(|error| {
                ProvisioningError::Cloud("send the device's name to the cloud", error)
            })?;
        }
        self.kept(move |introduced| introduced.put(&endpoint)).await
    }

    async fn tell_configuration(
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
        let prefix = self.newcomer.prefix();
        let wanted = body[self.client.uuid().as_str()]["config"].as_object();
        let wanted: Vec<&str> = wanted
            .into_iter()
            .flatten()
            .map(|(name, _)| name.strip_prefix(&prefix).unwrap_or(name))
            .collect();
        let own = self.client.identity().device_key();
        let path = format!("{DATA_API}/device_config_variable");
        for (name, value) in to_tell(current, &wanted) {
            let name = format!("{prefix}{name}");
            let body = json!({ "device": self.client.device_id(), "name": name, "value": value });
            let result = self
                .client
                .tell(&own, Method::POST, &path, &body, self.limit());
            unless_final(&name, result.await.map(drop)).map_err(failed)?;
        }
        Ok(())
    }

    /// Has the cloud keep the device on the release of which config.json has the commit.
    pub(super) async fn pin(&self) -> Result<(), ProvisioningError> {
        let held = self.read().await?;
        let commit = match held.get(PIN) {
            Some(Value::Object(of)) => of.get("commit").and_then(Value::as_str),
            _ => text(&held, PIN).ok().flatten(),
        };
        if held.get(PIN).is_none_or(Value::is_null) {
            return Ok(());
        }
        // It goes into a filter.
        let plain = |commit: &&str| {
            (1..=64).contains(&commit.len())
                && commit.bytes().all(|byte| byte.is_ascii_alphanumeric())
        };
        let Some(commit) = commit.filter(plain) else {
            tracing::error!("`{PIN}` in config.json is not a commit and is ignored");
            return self.unpin().await;
        };
        let failed = |error| ProvisioningError::Cloud("pin this device to its release", error);
        let filter = format!("commit eq '{commit}' and status eq 'success'");
        let own = self.client.identity().device_key();
        let rows = self
            .client
            .rows("release", "id", &filter, &own, self.limit());
        let rows = rows.await.map_err(failed)?;
        let Some(release) = rows.first().and_then(|row| row.get("id")?.as_u64()) else {
            return Err(failed(CloudError::Invalid(format!(
                "the cloud has no release `{commit}` for this device"
            ))));
        };
        let body = json!({ "is_pinned_on__release": release });
        let pinned = self.patch_device(&body).await;
        unless_final("the release to stay on", pinned).map_err(failed)?;
        self.unpin().await
    }

    async fn unpin(&self) -> Result<(), ProvisioningError> {
        self.write(|config| {
            config.remove(PIN);
        })
        .await
    }

    /// What is remembered, asked where that holds up nobody.
    async fn kept<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&dyn IntroductionRecord) -> Result<T, Box<dyn Error + Send + Sync>>
        + Send
        + 'static,
    ) -> Result<T, ProvisioningError> {
        let introduced = Arc::clone(&self.introduced);
        match tokio::task::spawn_blocking(move || ask(&*introduced)).await {
            Ok(kept) => kept.map_err(ProvisioningError::Store),
            Err(gone) => Err(ProvisioningError::Store(gone.into())),
        }
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

/// What the cloud refuses is given up: a device must not wait for its first target for ever, because a variable
/// cannot be set. Where it is the device's key that is refused, the target would be as well.
fn unless_final(what: &str, told: Result<(), CloudError>) -> Result<(), CloudError> {
    match told {
        Err(error) if is_refusal(&error) => {
            tracing::error!("the cloud rejected {what}, which is dropped: {error}");
            Ok(())
        }
        told => told,
    }
}

fn is_refusal(error: &CloudError) -> bool {
    use StatusCode as S;
    match error {
        CloudError::Invalid(_) => true,
        CloudError::Status { status, .. } => {
            status.is_client_error()
                && !matches!(
                    *status,
                    S::UNAUTHORIZED | S::REQUEST_TIMEOUT | S::TOO_MANY_REQUESTS
                )
        }
        _ => false,
    }
}

/// The variables that the cloud is told: those that do not have their default, and that the target does not
/// have. A device that was set up in local mode, or without its way to the cloud, does not stay so.
fn to_tell(current: &BTreeMap<String, String>, wanted: &[&str]) -> Vec<(String, String)> {
    let mut told = Vec::new();
    for (name, value) in current {
        let is_default = variable(name).is_some_and(|variable| match variable.kind {
            VariableKind::Bool => flag(current, name) == flag(&BTreeMap::new(), name),
            VariableKind::Int(..) | VariableKind::Word(_) => value == variable.default,
        });
        if is_default || wanted.contains(&name.as_str()) {
            continue;
        }
        let value = match name.as_str() {
            "SUPERVISOR_LOCAL_MODE" => "false",
            "SUPERVISOR_VPN_CONTROL" => "true",
            _ => value,
        };
        told.push((name.clone(), value.to_owned()));
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_from_its_default_and_is_not_in_the_target_is_told() {
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
        let told = to_tell(&current.into(), &["HOST_CONFIG_gpu_mem"]);
        let told: Vec<_> = told.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        assert_eq!(
            told,
            [
                ("HOST_CONFIG_dtparam", "\"i2c_arm=on\""),
                ("SUPERVISOR_LOCAL_MODE", "false"),
                ("SUPERVISOR_PERSISTENT_LOGGING", "true"),
                ("SUPERVISOR_VPN_CONTROL", "true"),
            ]
        );
    }
}
