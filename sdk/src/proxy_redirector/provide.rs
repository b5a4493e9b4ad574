//! From the exported functions to a [`Provider`]'s. The macro [`crate::plugin!`] exports this; nobody else.

use std::marker::PhantomData;

use super::{Provider, wit};
use crate::bindings::proxy::exports::platform::supervisor::proxy_redirector::Guest;

/// What a plugin exports whose provider is `P`.
pub struct ProxyExports<P>(PhantomData<P>);

impl<P: Provider> Guest for ProxyExports<P> {
    async fn get() -> Result<wit::ProxyState, wit::ProxyError> {
        Ok(P::get().await?.into())
    }

    async fn set(target: Option<wit::Redirection>) -> Result<(), wit::ProxyError> {
        Ok(P::set(target.map(Into::into)).await?)
    }

    async fn no_proxy() -> Result<Vec<String>, wit::ProxyError> {
        Ok(P::no_proxy().await?)
    }

    async fn set_no_proxy(addresses: Vec<String>) -> Result<(), wit::ProxyError> {
        Ok(P::set_no_proxy(addresses).await?)
    }

    async fn apply() -> Result<(), wit::ProxyError> {
        Ok(P::apply().await?)
    }
}
