//! How a device registers with its cloud (docs/spec/device.md#provisioning): with a provisioning key, under the uuid
//! and the key that its config.json has had since before the first attempt. Then it sends its initial configuration
//! once.
//!
//! After a kill every step is repeated and finds the results of the earlier one: a device that registered and could not
//! store that is refused as known (409), and authenticates with its own key. Failures are retried without end. The
//! services on the device keep running; nothing else sends requests to the cloud before [`ProvisioningState::ready`].

mod enrolment;
mod introduction;

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use http::Method;
use model::{ApiKey, error_chain};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::blocking::blocking;
use crate::client::{Client, CloudError};
use crate::identity::{ConfigFile, IdentityError, number};
use crate::poll::Device;

/// The pause between two attempts, if config.json does not set it.
const RETRY: Duration = Duration::from_secs(30);
/// The range that config.json can set, in milliseconds.
const RETRIES: std::ops::RangeInclusive<u64> = 100..=3_600_000;

/// What a device sends about itself when it registers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Description {
    /// For example `raspberrypi4-64`.
    pub device_type: String,
    /// The version of the API that the supervisor implements.
    pub supervisor_version: String,
    /// Missing if unknown.
    pub os_version: Option<String>,
    /// Missing if unknown.
    pub os_variant: Option<String>,
    /// All addresses, separated by blanks.
    pub mac_address: Option<String>,
}

/// What a device sends to its cloud once. The binary implements it.
pub trait IntroductionSource: Send + Sync + 'static {
    /// Returns the description of the device.
    fn description(&self) -> Description;

    /// Returns the device's configuration, whoever set it: values by the name of their variable, without prefix.
    /// Variables with their default value may be missing.
    fn configuration(&self) -> BoxFuture<'_, BTreeMap<String, String>>;

    /// Returns the prefix of variable names at the cloud, such as `PLATFORM_`.
    fn prefix(&self) -> String;
}

/// The device's record of the clouds that have received its initial configuration. The store implements it; a simulated
/// device has another implementation. Both methods may block.
pub trait IntroductionRecord: Send + Sync + 'static {
    /// Whether the cloud at this address has received it.
    ///
    /// # Errors
    /// If the record cannot be read.
    fn is_to(&self, endpoint: &str) -> Result<bool, Box<dyn Error + Send + Sync>>;

    /// Records that the cloud at this address has received it.
    ///
    /// # Errors
    /// If the record cannot be stored.
    fn put(&self, endpoint: &str) -> Result<(), Box<dyn Error + Send + Sync>>;
}

/// The state of the registration, under way or done.
#[derive(Debug, Clone)]
pub struct ProvisioningState {
    /// Cancelled once the target may be requested from the cloud.
    pub ready: CancellationToken,
    /// Cancelled when config.json has received another identity since the start, which takes effect with the next
    /// start.
    pub renewed: CancellationToken,
}

/// What the registration needs.
pub(crate) struct ProvisioningTask {
    client: Arc<Client>,
    config: Arc<dyn ConfigFile>,
    introduced: Arc<dyn IntroductionRecord>,
    introduction: Arc<dyn IntroductionSource>,
    device: Arc<dyn Device>,
}

/// Why an attempt failed.
#[derive(Debug, thiserror::Error)]
enum ProvisioningError {
    #[error("failed to use the device's config.json")]
    Config(#[source] Box<dyn Error + Send + Sync>),
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error("failed to {0}")]
    Cloud(&'static str, #[source] CloudError),
    #[error(
        "the cloud knows this device by another key, and `apiKey` of config.json gives no access to it"
    )]
    Unknown,
    #[error("the device now has another uuid and another key")]
    Renewed,
    #[error("failed to store what was sent to the cloud")]
    Store(#[source] Box<dyn Error + Send + Sync>),
}

impl ProvisioningError {
    fn retry_after(&self) -> Option<Duration> {
        match self {
            ProvisioningError::Cloud(_, error) => error.retry_after(),
            _ => None,
        }
    }
}

impl ProvisioningState {
    /// Begins to register the device, until `stop`. Runs in a tokio runtime.
    #[must_use]
    pub fn start(
        client: Arc<Client>,
        config: Arc<dyn ConfigFile>,
        introduced: Arc<dyn IntroductionRecord>,
        introduction: Arc<dyn IntroductionSource>,
        device: Arc<dyn Device>,
        stop: CancellationToken,
    ) -> ProvisioningState {
        let provisioned = ProvisioningState {
            ready: CancellationToken::new(),
            renewed: CancellationToken::new(),
        };
        let provisioning = ProvisioningTask {
            client,
            config,
            introduced,
            introduction,
            device,
        };
        let state = provisioned.clone();
        tokio::spawn(stop.run_until_cancelled_owned(async move {
            provisioning.run(&state).await;
        }));
        provisioned
    }
}

impl ProvisioningTask {
    async fn run(&self, state: &ProvisioningState) {
        loop {
            match self.attempt(state).await {
                Ok(()) => {
                    state.ready.cancel();
                    return;
                }
                Err(renewed @ ProvisioningError::Renewed) => {
                    tracing::warn!("{renewed}");
                    state.renewed.cancel();
                    return;
                }
                Err(error) => {
                    let own = self.retry_delay().await;
                    let wait = own.max(error.retry_after().unwrap_or_default());
                    tracing::warn!(
                        "failed to set up this device with its cloud, trying again in {wait:.0?}: {}",
                        error_chain(&error)
                    );
                    tokio::time::sleep(wait).await;
                }
            }
        }
    }

    async fn attempt(&self, state: &ProvisioningState) -> Result<(), ProvisioningError> {
        let enrolled = self.enrol().await;
        if self.client.device_id().is_none() {
            // A device without a provisioning key may be registered anyway: it polls with its own key.
            if self.provisioning_key().await?.is_none() {
                state.ready.cancel();
            }
            return enrolled;
        }
        self.pin().await?;
        self.introduce().await?;
        state.ready.cancel();
        enrolled
    }

    /// Reads config.json on a thread that may block, since its disk may be slow.
    async fn read(&self) -> Result<Map<String, Value>, ProvisioningError> {
        let config = Arc::clone(&self.config);
        let read = blocking(move || config.read()).await;
        read.map_err(ProvisioningError::Config)
    }

    /// Changes config.json. Everything written is on the disk when this returns.
    async fn write(
        &self,
        mut change: impl FnMut(&mut Map<String, Value>) + Send + 'static,
    ) -> Result<(), ProvisioningError> {
        let config = Arc::clone(&self.config);
        let written = blocking(move || config.update(&mut change)).await;
        written.map_err(ProvisioningError::Config)
    }

    async fn retry_delay(&self) -> Duration {
        let delay = match self.read().await {
            Ok(config) => number(&config, "bootstrapRetryDelay").ok().flatten(),
            Err(_) => None,
        };
        let (least, most) = RETRIES.into_inner();
        delay.map_or(RETRY, |delay| {
            Duration::from_millis(delay.clamp(least, most))
        })
    }

    fn limit(&self) -> Duration {
        self.device.settings().request_timeout
    }

    /// Sends JSON to the cloud with `key`; returns the answer if it is JSON.
    async fn send(
        &self,
        key: &ApiKey,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<Option<Value>, CloudError> {
        let limit = self.limit();
        self.client.send_json(key, method, path, body, limit).await
    }

    /// Returns the ids of the rows of `resource` that match `filter`, as far as `key` gives access.
    async fn rows(
        &self,
        resource: &str,
        filter: &str,
        key: &ApiKey,
    ) -> Result<Vec<Value>, CloudError> {
        let limit = self.limit();
        self.client.rows(resource, "id", filter, key, limit).await
    }
}

#[cfg(test)]
mod tests;
