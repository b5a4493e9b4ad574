//! Calls a [`Provider`] from the exported functions. Used only by the macro [`crate::plugin!`].

use super::{Provider, Setting, wit};

/// The type that exports the action: it names the provider.
pub trait BootExports {
    /// The plugin's own type.
    type Provider: Provider;
}

impl<T: BootExports> wit::Guest for T {
    async fn get() -> Result<Vec<wit::Setting>, String> {
        Ok(T::Provider::get()
            .await?
            .into_iter()
            .map(Into::into)
            .collect())
    }

    async fn compare(target: Vec<wit::Setting>) -> Result<wit::Comparison, String> {
        Ok(T::Provider::compare(settings(target)).await?.into())
    }

    async fn set(target: Vec<wit::Setting>) -> Result<wit::Comparison, String> {
        Ok(T::Provider::set(settings(target)).await?.into())
    }
}

fn settings(target: Vec<wit::Setting>) -> Vec<Setting> {
    target.into_iter().map(Into::into).collect()
}
