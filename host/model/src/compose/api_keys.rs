//! Where the keys of services to the device's API come from.

use crate::{ApiKey, AppId, ServiceName};

/// The source of services' keys to the device's API. The store implements it.
pub trait ApiKeys {
    /// Returns the key of one service; created at the first call, the same from then on.
    ///
    /// # Errors
    /// [`KeyError`] if it can be neither read nor stored.
    fn service_key(&self, app: AppId, service: &ServiceName) -> Result<ApiKey, KeyError>;
}

/// A failure to obtain a service's key.
#[derive(Debug, thiserror::Error)]
#[error("failed to get the API key of service `{service}` of app {app}")]
pub struct KeyError {
    /// The app of the service.
    pub app: AppId,
    /// The service whose environment the key is for.
    pub service: ServiceName,
    /// The store's error.
    pub source: Box<dyn std::error::Error + Send + Sync>,
}
