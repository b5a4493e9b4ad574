//! `wit/proxy-redirector.wit`: calls the provider of the action.

use plugin_protocol::{ProxyAnswer, ProxyCall, ProxyRequest};

use crate::bindings::platform::supervisor::proxy_redirector;
use crate::bindings::platform::supervisor::proxy_types::{
    self, ProxyError, ProxyState, Redirection,
};
use crate::guest::{Guest, GuestAccess, GuestData, host};
use crate::instance_host::Answer;

impl proxy_types::Host for &mut Guest {}
impl proxy_redirector::Host for &mut Guest {}

impl proxy_redirector::HostWithStore<Guest> for GuestData {
    async fn get(access: &GuestAccess) -> Answer<ProxyState, ProxyError> {
        call_provider(access, ProxyCall::Get, |answer| match answer {
            ProxyAnswer::State(state) => Some(state.into()),
            _ => None,
        })
        .await
    }

    async fn set(access: &GuestAccess, target: Option<Redirection>) -> Answer<(), ProxyError> {
        let call = ProxyCall::Set(target.map(Into::into));
        call_provider(access, call, done).await
    }

    async fn no_proxy(access: &GuestAccess) -> Answer<Vec<String>, ProxyError> {
        call_provider(access, ProxyCall::NoProxy, |answer| match answer {
            ProxyAnswer::Addresses(addresses) => Some(addresses),
            _ => None,
        })
        .await
    }

    async fn set_no_proxy(access: &GuestAccess, addresses: Vec<String>) -> Answer<(), ProxyError> {
        call_provider(access, ProxyCall::SetNoProxy(addresses), done).await
    }

    async fn apply(access: &GuestAccess) -> Answer<(), ProxyError> {
        call_provider(access, ProxyCall::Apply, done).await
    }
}

fn done(answer: ProxyAnswer) -> Option<()> {
    matches!(answer, ProxyAnswer::Done).then_some(())
}

/// Calls the provider; an answer to another call counts as an error of the provider's own.
async fn call_provider<R>(
    access: &GuestAccess,
    call: ProxyCall,
    read: impl FnOnce(ProxyAnswer) -> Option<R>,
) -> Answer<R, ProxyError> {
    let answer = host(access).try_ask(ProxyRequest { call }).await?;
    let another = || ProxyError::Other("the provider answered another call".to_owned());
    Ok(answer.and_then(|answer| read(answer).ok_or_else(another)))
}
