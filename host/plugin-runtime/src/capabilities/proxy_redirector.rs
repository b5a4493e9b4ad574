//! `wit/proxy-redirector.wit`: has whoever provides the action do it.

use plugin_protocol::{ProxyAnswer, ProxyCall, ProxyRequest};
use wasmtime::component::Accessor;

use crate::bindings::platform::supervisor::proxy_redirector;
use crate::bindings::platform::supervisor::proxy_types::{
    self, ProxyError, ProxyState, Redirection,
};
use crate::guest::{Guest, ThisGuest, host};

impl proxy_types::Host for &mut Guest {}

impl proxy_redirector::Host for &mut Guest {}

impl proxy_redirector::HostWithStore<Guest> for ThisGuest {
    async fn get(
        accessor: &Accessor<Guest, Self>,
    ) -> wasmtime::Result<Result<ProxyState, ProxyError>> {
        asked(accessor, ProxyCall::Get, |answer| match answer {
            ProxyAnswer::State(state) => Some(state.into()),
            _ => None,
        })
        .await
    }

    async fn set(
        accessor: &Accessor<Guest, Self>,
        wanted: Option<Redirection>,
    ) -> wasmtime::Result<Result<(), ProxyError>> {
        let call = ProxyCall::Set(wanted.map(Into::into));
        asked(accessor, call, done).await
    }

    async fn no_proxy(
        accessor: &Accessor<Guest, Self>,
    ) -> wasmtime::Result<Result<Vec<String>, ProxyError>> {
        asked(accessor, ProxyCall::NoProxy, |answer| match answer {
            ProxyAnswer::Addresses(addresses) => Some(addresses),
            _ => None,
        })
        .await
    }

    async fn set_no_proxy(
        accessor: &Accessor<Guest, Self>,
        addresses: Vec<String>,
    ) -> wasmtime::Result<Result<(), ProxyError>> {
        asked(accessor, ProxyCall::SetNoProxy(addresses), done).await
    }

    async fn apply(accessor: &Accessor<Guest, Self>) -> wasmtime::Result<Result<(), ProxyError>> {
        asked(accessor, ProxyCall::Apply, done).await
    }
}

fn done(answer: ProxyAnswer) -> Option<()> {
    matches!(answer, ProxyAnswer::Done).then_some(())
}

/// Has the provider do it; an answer to another call is an error like the provider's own.
async fn asked<R>(
    accessor: &Accessor<Guest, ThisGuest>,
    call: ProxyCall,
    read: impl FnOnce(ProxyAnswer) -> Option<R>,
) -> wasmtime::Result<Result<R, ProxyError>> {
    Ok(match host(accessor).ask(ProxyRequest { call }).await? {
        Ok(answer) => read(answer)
            .ok_or_else(|| ProxyError::Other("the provider answered another call".to_owned())),
        Err(error) => Err(error.into()),
    })
}
