//! From the exported functions to a [`Provider`]'s. The macro [`crate::plugin!`] exports this; nobody else.

use std::marker::PhantomData;

use super::{Provider, Setting, wit};

/// What a plugin exports whose provider is `P`.
pub struct BootExports<P>(PhantomData<P>);

impl<P: Provider> wit::Guest for BootExports<P> {
    async fn get() -> Result<Vec<wit::Setting>, String> {
        Ok(P::get().await?.into_iter().map(Into::into).collect())
    }

    async fn compare(target: Vec<wit::Setting>) -> Result<wit::Comparison, String> {
        Ok(P::compare(settings(target)).await?.into())
    }

    async fn set(target: Vec<wit::Setting>) -> Result<wit::Comparison, String> {
        Ok(P::set(settings(target)).await?.into())
    }
}

fn settings(target: Vec<wit::Setting>) -> Vec<Setting> {
    target.into_iter().map(Into::into).collect()
}
