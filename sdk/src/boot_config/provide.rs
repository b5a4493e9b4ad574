//! From the exported functions to a [`Provider`]'s. The macro [`crate::plugin!`] calls this; nobody else.

use super::{Provider, Setting, wit};

/// # Errors
/// The provider's.
pub async fn get<P: Provider>() -> Result<Vec<wit::Setting>, String> {
    Ok(P::get().await?.into_iter().map(Into::into).collect())
}

/// # Errors
/// The provider's.
pub async fn compare<P: Provider>(wanted: Vec<wit::Setting>) -> Result<wit::Comparison, String> {
    Ok(P::compare(settings(wanted)).await?.into())
}

/// # Errors
/// The provider's.
pub async fn set<P: Provider>(wanted: Vec<wit::Setting>) -> Result<wit::Comparison, String> {
    Ok(P::set(settings(wanted)).await?.into())
}

fn settings(wanted: Vec<wit::Setting>) -> Vec<Setting> {
    wanted.into_iter().map(Into::into).collect()
}
