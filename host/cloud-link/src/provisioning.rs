//! How a device becomes known to its cloud (docs/spec/device.md#provisioning): it registers with a provisioning key,
//! under the uuid and the key that its config.json has had since before the first try, and says once what it was set
//! up with.
//!
//! Every step is asked anew after a kill and finds what an earlier one has left: a device that registered and
//! could not write it down is refused as known (409), and shows its key. What fails is tried again, for ever.
//! Whatever runs on the device runs on meanwhile; nothing else asks the cloud before [`Provisioned::ready`].

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

use crate::blocking;
use crate::client::{Client, CloudError};
use crate::identity::{ConfigFile, IdentityError, number};
use crate::poll::Device;

/// Between two tries, where config.json does not say.
const RETRY: Duration = Duration::from_secs(30);
/// What config.json can make of it, in milliseconds.
const RETRIES: std::ops::RangeInclusive<u64> = 100..=3_600_000;

/// What a device says of itself when it registers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Description {
    /// For example `raspberrypi4-64`.
    pub device_type: String,
    /// Of the API that the supervisor has.
    pub supervisor_version: String,
    /// Where it is known.
    pub os_version: Option<String>,
    /// Where it is known.
    pub os_variant: Option<String>,
    /// All of them, with blanks between.
    pub mac_address: Option<String>,
}

/// What a device tells its cloud once. The binary implements it.
pub trait Newcomer: Send + Sync + 'static {
    /// What the device is.
    fn description(&self) -> Description;

    /// How the device is configured, whoever did it: values by the name of their variable, without prefix.
    /// Those that have their default need not be there.
    fn configuration(&self) -> BoxFuture<'_, BTreeMap<String, String>>;

    /// The prefix that names of variables have at the cloud, such as `PLATFORM_`.
    fn prefix(&self) -> String;
}

/// What a device remembers of having told its clouds how it is set up. The store is the one; a simulated device
/// has another. Both may block.
pub trait IntroductionRecord: Send + Sync + 'static {
    /// Whether the cloud at this address has been told.
    ///
    /// # Errors
    /// Where that cannot be read.
    fn is_to(&self, endpoint: &str) -> Result<bool, Box<dyn Error + Send + Sync>>;

    /// It has been, from now on.
    ///
    /// # Errors
    /// Where that cannot be kept.
    fn put(&self, endpoint: &str) -> Result<(), Box<dyn Error + Send + Sync>>;
}

/// Becoming known, under way or done.
#[derive(Debug, Clone)]
pub struct ProvisioningState {
    /// Cancelled once the cloud may be asked for the target.
    pub ready: CancellationToken,
    /// Cancelled when the device has another identity in its config.json than it was started with, which
    /// takes effect with its next start.
    pub renewed: CancellationToken,
}

/// What becoming known takes.
pub(crate) struct ProvisioningTask {
    client: Arc<Client>,
    config: Arc<dyn ConfigFile>,
    introduced: Arc<dyn IntroductionRecord>,
    newcomer: Arc<dyn Newcomer>,
    device: Arc<dyn Device>,
}

/// Why a try did not succeed.
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
    /// Begins to make the device known, until `stop`. Runs in a tokio runtime.
    #[must_use]
    pub fn start(
        client: Arc<Client>,
        config: Arc<dyn ConfigFile>,
        introduced: Arc<dyn IntroductionRecord>,
        newcomer: Arc<dyn Newcomer>,
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
            newcomer,
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
            // A device without a key to register with may be known all the same: it asks with its own.
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

    /// Blocks nobody: config.json is on a disk that may be slow.
    async fn read(&self) -> Result<Map<String, Value>, ProvisioningError> {
        let config = Arc::clone(&self.config);
        let read = blocking(move || config.read()).await;
        read.map_err(ProvisioningError::Config)
    }

    /// What was written is on the disk when this returns.
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

    /// Sends JSON to the cloud as `key`; the answer as JSON where it is any.
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

    /// The ids of the rows of `resource` for which `filter` holds, as `key` sees them.
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
