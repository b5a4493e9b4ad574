//! The number of the device at its cloud: from a registration, or by authenticating with a key.

use http::{Method, StatusCode};
use model::ApiKey;
use serde_json::{Map, Value, json};

use super::{ProvisioningError, ProvisioningTask};
use crate::client::{CloudError, DATA_API};
use crate::clock::now_ms;
use crate::identity::{number, random_key, text};

/// The key of config.json that registers devices, until it has been used.
const PROVISIONING_KEY: &str = "apiKey";

impl ProvisioningTask {
    /// Registers the device, if it is not registered, and deletes the provisioning key.
    pub(super) async fn enrol(&self) -> Result<(), ProvisioningError> {
        let key = self.provisioning_key().await?;
        if self.client.device_id().is_some() {
            let Some(key) = key else { return Ok(()) };
            self.exchange(Some(&key)).await?;
            return self.forget_key().await;
        }
        let config = self.read().await?;
        let was_registered = number(&config, "registered_at")?.is_some();
        let id = match &key {
            Some(key) if !was_registered => match self.register(key, &config).await {
                Ok(id) => id,
                Err(ProvisioningError::Cloud(_, error))
                    if error.status() == Some(StatusCode::CONFLICT) =>
                {
                    tracing::info!("the cloud knows this device: presenting the device's key");
                    match self.exchange(Some(key)).await {
                        Err(ProvisioningError::Unknown) => return self.renew().await,
                        other => other?,
                    }
                }
                Err(error) => return Err(error),
            },
            key => self.exchange(key.as_ref()).await?,
        };
        // A clock that was never set is not a reason to register again.
        let now = now_ms().max(1);
        self.write(move |config| {
            if !matches!(number(config, "registered_at"), Ok(Some(_))) {
                config.insert("registered_at".into(), now.into());
            }
            config.insert("deviceId".into(), id.into());
            config.remove(PROVISIONING_KEY);
        })
        .await?;
        self.client.set_device_id(id);
        tracing::info!(id, "this device is registered with its cloud");
        Ok(())
    }

    pub(super) async fn provisioning_key(&self) -> Result<Option<ApiKey>, ProvisioningError> {
        let config = self.read().await?;
        let key = text(&config, PROVISIONING_KEY)?;
        Ok(key.map(|key| ApiKey::from_text(key.to_owned())))
    }

    async fn forget_key(&self) -> Result<(), ProvisioningError> {
        self.write(|config| {
            config.remove(PROVISIONING_KEY);
        })
        .await
    }

    /// `POST /device/register`; returns the device's number.
    async fn register(
        &self,
        key: &ApiKey,
        config: &Map<String, Value>,
    ) -> Result<u64, ProvisioningError> {
        const WHAT: &str = "register this device with its cloud";
        let application = number(config, "applicationId")?;
        let application = application.ok_or_else(|| {
            let why = "config.json has no `applicationId`, the fleet to join";
            ProvisioningError::Cloud(WHAT, CloudError::Invalid(why.into()))
        })?;
        let user = number(config, "userId")?;
        let description = self.introduction.description();
        let identity = self.client.identity();
        // Without an OS version, the cloud rejects the supervisor's version (docs/spec/cloud.md#device-register); the
        // first report includes it anyway.
        let supervisor_version = description
            .os_version
            .as_ref()
            .map(|_| &description.supervisor_version);
        let mut body = json!({
            "application": application,
            "uuid": identity.uuid.as_str(),
            "device_type": text(config, "deviceType")?.unwrap_or(&description.device_type),
            "api_key": identity.device_key().reveal(),
            "supervisor_version": supervisor_version,
            "os_version": description.os_version,
            "os_variant": description.os_variant,
            "mac_address": description.mac_address,
        });
        if let Some(user) = user {
            body["user"] = user.into();
        }
        let answer = self.send(key, Method::POST, "device/register", &body).await;
        let answer = answer.map_err(|error| ProvisioningError::Cloud(WHAT, error))?;
        let id = answer.as_ref().and_then(id_of);
        id.ok_or(ProvisioningError::Cloud(
            WHAT,
            CloudError::Shape("a registration"),
        ))
    }

    /// Returns the device's number, with its own key or, if the cloud does not accept that, by sending that key to the
    /// cloud with the provisioning key.
    async fn exchange(&self, provisioning: Option<&ApiKey>) -> Result<u64, ProvisioningError> {
        let own = self.client.identity().device_key();
        if let Some(id) = self.number_as(&own).await? {
            return Ok(id);
        }
        let key = provisioning.ok_or(ProvisioningError::Unknown)?;
        let id = self.number_as(key).await?;
        let id = id.ok_or(ProvisioningError::Unknown)?;
        let path = format!("api-key/device/{id}/device-key");
        let body = json!({ "apiKey": own.reveal() });
        match self.send(key, Method::POST, &path, &body).await {
            Ok(_) => Ok(id),
            Err(error) if is_refusal(&error) => Err(ProvisioningError::Unknown),
            Err(error) => Err(ProvisioningError::Cloud(
                "give the cloud this device's key",
                error,
            )),
        }
    }

    /// Returns `None` if the cloud does not show the device to this key. A cloud that is out of order does not count as
    /// refusing.
    async fn number_as(&self, key: &ApiKey) -> Result<Option<u64>, ProvisioningError> {
        const WHAT: &str = "look this device up at its cloud";
        let filter = format!("uuid eq '{}'", self.client.uuid());
        let failed = |error| ProvisioningError::Cloud(WHAT, error);
        let rows = match self.rows("device", &filter, key).await {
            Err(error) if is_refusal(&error) => return Ok(None),
            answer => answer.map_err(failed)?,
        };
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        let id = id_of(row).ok_or(failed(CloudError::Shape("a device")))?;
        Ok(Some(id))
    }

    /// Creates a new identity, since another device has this one.
    async fn renew(&self) -> Result<(), ProvisioningError> {
        let (uuid, key) = (random_key()?, random_key()?);
        tracing::warn!(
            uuid = %self.client.uuid(),
            "the cloud knows another device as `{}`",
            self.client.uuid()
        );
        self.write(move |config| {
            config.insert("uuid".into(), uuid.clone().into());
            config.insert("deviceApiKey".into(), key.clone().into());
            config.remove("deviceId");
            config.remove("registered_at");
        })
        .await?;
        Err(ProvisioningError::Renewed)
    }

    /// Sends `PATCH /v7/device(<id>)` as the device.
    pub(super) async fn patch_device(&self, body: &Value) -> Result<(), CloudError> {
        let Some(id) = self.client.device_id() else {
            return Err(CloudError::Unprovisioned);
        };
        let own = self.client.identity().device_key();
        let path = format!("{DATA_API}/device({id})");
        self.send(&own, Method::PATCH, &path, body).await.map(drop)
    }
}

/// Whether the cloud has refused, rather than been unable to answer.
fn is_refusal(error: &CloudError) -> bool {
    use StatusCode as S;
    matches!(
        error.status(),
        Some(S::BAD_REQUEST | S::UNAUTHORIZED | S::FORBIDDEN | S::NOT_FOUND | S::CONFLICT)
    )
}

fn id_of(row: &Value) -> Option<u64> {
    row.get("id")?.as_u64().filter(|id| *id > 0)
}
