//! From the exported functions to a [`Provider`]'s. The macro [`crate::plugin!`] calls this; nobody else.

use super::{Provider, wit};

/// # Errors
/// The provider's.
pub async fn get<P: Provider>() -> Result<wit::ProxyState, wit::ProxyError> {
    Ok(P::get().await?.into())
}

/// # Errors
/// The provider's.
pub async fn set<P: Provider>(wanted: Option<wit::Redirection>) -> Result<(), wit::ProxyError> {
    Ok(P::set(wanted.map(Into::into)).await?)
}

/// # Errors
/// The provider's.
pub async fn no_proxy<P: Provider>() -> Result<Vec<String>, wit::ProxyError> {
    Ok(P::no_proxy().await?)
}

/// # Errors
/// The provider's.
pub async fn set_no_proxy<P: Provider>(addresses: Vec<String>) -> Result<(), wit::ProxyError> {
    Ok(P::set_no_proxy(addresses).await?)
}

/// # Errors
/// The provider's.
pub async fn apply<P: Provider>() -> Result<(), wit::ProxyError> {
    Ok(P::apply().await?)
}
