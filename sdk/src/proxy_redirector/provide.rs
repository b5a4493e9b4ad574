//! Calls a [`Provider`] from the exported functions. Used only by the macro [`crate::plugin!`].

use super::{Provider, wit};
use crate::bindings::proxy::exports::platform::supervisor::proxy_redirector::Guest;

/// The type that exports the action: it names the provider.
pub trait ProxyExports {
    /// The plugin's own type.
    type Provider: Provider;
}

impl<T: ProxyExports> Guest for T {
    async fn get() -> Result<wit::ProxyState, wit::ProxyError> {
        Ok(T::Provider::get().await?.into())
    }

    async fn set(target: Option<wit::Redirection>) -> Result<(), wit::ProxyError> {
        Ok(T::Provider::set(target.map(Into::into)).await?)
    }

    async fn no_proxy() -> Result<Vec<String>, wit::ProxyError> {
        Ok(T::Provider::no_proxy().await?)
    }

    async fn set_no_proxy(addresses: Vec<String>) -> Result<(), wit::ProxyError> {
        Ok(T::Provider::set_no_proxy(addresses).await?)
    }

    async fn apply() -> Result<(), wit::ProxyError> {
        Ok(T::Provider::apply().await?)
    }
}
