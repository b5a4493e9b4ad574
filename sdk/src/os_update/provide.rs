//! Calls a [`Provider`] from the exported functions. Used only by the macro [`crate::plugin!`].

use super::{Provider, wit};

/// The type that exports the action: it names the provider.
pub trait OsExports {
    /// The plugin's own type.
    type Provider: Provider;
}

impl<T: OsExports> wit::Guest for T {
    async fn status() -> Result<wit::OsStatus, String> {
        Ok(T::Provider::status().await?.into())
    }

    async fn stage(source: String, version: String) -> Result<(), String> {
        T::Provider::stage(source, version).await
    }

    async fn activate() -> Result<(), String> {
        T::Provider::activate().await
    }

    async fn commit() -> Result<(), String> {
        T::Provider::commit().await
    }

    async fn roll_back() -> Result<(), String> {
        T::Provider::roll_back().await
    }
}
