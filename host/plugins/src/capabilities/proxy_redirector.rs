//! `wit/proxy-redirector.wit`: has whoever provides the action do it.

use futures::future::BoxFuture;
use wasmtime::component::Accessor;

use crate::actions::{ActionError, not_exported};
use crate::bindings::exports::platform::supervisor::proxy_redirector::Guest as Provider;
use crate::bindings::platform::supervisor::proxy_redirector;
use crate::bindings::platform::supervisor::proxy_types::{
    self, ProxyError, ProxyState, Redirection,
};
use crate::guest::{Guest, ThisGuest};
use crate::manifest::Action;
use crate::text::cut;

impl proxy_types::Host for &mut Guest {}

impl proxy_redirector::Host for &mut Guest {}

impl proxy_redirector::HostWithStore<Guest> for ThisGuest {
    async fn get(accessor: &Accessor<Guest, Self>) -> Result<ProxyState, ProxyError> {
        provided(accessor, |provider, inside| {
            Box::pin(provider.call_get(inside))
        })
        .await
    }

    async fn set(
        accessor: &Accessor<Guest, Self>,
        wanted: Option<Redirection>,
    ) -> Result<(), ProxyError> {
        provided(accessor, |provider, inside| {
            Box::pin(provider.call_set(inside, wanted))
        })
        .await
    }

    async fn no_proxy(accessor: &Accessor<Guest, Self>) -> Result<Vec<String>, ProxyError> {
        provided(accessor, |provider, inside| {
            Box::pin(provider.call_no_proxy(inside))
        })
        .await
    }

    async fn set_no_proxy(
        accessor: &Accessor<Guest, Self>,
        addresses: Vec<String>,
    ) -> Result<(), ProxyError> {
        provided(accessor, |provider, inside| {
            Box::pin(provider.call_set_no_proxy(inside, addresses))
        })
        .await
    }

    async fn apply(accessor: &Accessor<Guest, Self>) -> Result<(), ProxyError> {
        provided(accessor, |provider, inside| {
            Box::pin(provider.call_apply(inside))
        })
        .await
    }
}

/// Calls the provider; what goes wrong on the way is an error like the provider's own.
async fn provided<R: Send + 'static>(
    accessor: &Accessor<Guest, ThisGuest>,
    call: impl for<'a> FnOnce(
        &'a Provider,
        &'a Accessor<Guest>,
    ) -> BoxFuture<'a, wasmtime::Result<Result<R, ProxyError>>>
    + Send
    + 'static,
) -> Result<R, ProxyError> {
    const ACTION: Action = Action::ProxyRedirector;
    let (actions, depth) = accessor.with(|mut access| {
        let guest = access.get();
        (guest.around.actions.clone(), guest.depth)
    });
    let called = actions.call(ACTION, depth, |exports, inside| {
        let Some(provider) = &exports.proxy_redirector else {
            return Box::pin(std::future::ready(Err(not_exported(ACTION))));
        };
        call(provider, inside)
    });
    match called.await {
        Ok(answer) => answer.map_err(bounded),
        Err(none @ ActionError::NoProvider(_)) => Err(ProxyError::Unavailable(none.to_string())),
        Err(failed) => Err(ProxyError::Other(failed.to_string())),
    }
}

/// What a provider says is passed on to its caller, and from there to clients.
fn bounded(error: ProxyError) -> ProxyError {
    match error {
        ProxyError::Unavailable(why) => ProxyError::Unavailable(cut(why)),
        ProxyError::Invalid(why) => ProxyError::Invalid(cut(why)),
        ProxyError::Other(why) => ProxyError::Other(cut(why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::LONGEST;

    #[test]
    fn m1_a_providers_error_is_no_longer_than_any_other() {
        let long = || "\u{1}".repeat(33 << 20);
        for error in [
            ProxyError::Unavailable(long()),
            ProxyError::Invalid(long()),
            ProxyError::Other(long()),
        ] {
            let (ProxyError::Unavailable(why) | ProxyError::Invalid(why) | ProxyError::Other(why)) =
                bounded(error);
            assert_eq!(why.len(), LONGEST);
        }
    }
}
