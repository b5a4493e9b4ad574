//! Calls of the actions that a component exports: from plain data to its functions and back.

use plugin_protocol::{
    Action, ActionAnswer, ActionCall, BootAnswer, BootCall, BootComparison, BootSetting,
    ProxyAnswer, ProxyCall,
};
use wasmtime::component::Accessor;

use crate::bindings::exports::platform::supervisor::{boot_config, proxy_redirector};
use crate::exports::Exports;
use crate::guest::Guest;

impl Exports {
    /// Has the component do what `call` says.
    pub(crate) async fn act(
        &self,
        inside: &Accessor<Guest>,
        call: ActionCall,
    ) -> wasmtime::Result<ActionAnswer> {
        Ok(match call {
            ActionCall::Identify => {
                let provider = self.identify.as_ref();
                let provider = provider.ok_or_else(|| not_exported(Action::Identify))?;
                ActionAnswer::Identify(provider.call_identify(inside).await?)
            }
            ActionCall::Proxy(call) => {
                let provider = self.proxy_redirector.as_ref();
                let provider = provider.ok_or_else(|| not_exported(Action::ProxyRedirector))?;
                let answer = proxy(provider, inside, call).await?;
                ActionAnswer::Proxy(answer.map_err(Into::into))
            }
            ActionCall::BootConfig(call) => {
                let provider = self.boot_config.as_ref();
                let provider = provider.ok_or_else(|| not_exported(Action::BootConfig))?;
                ActionAnswer::BootConfig(boot(provider, inside, call).await?)
            }
        })
    }
}

/// Where a component turns out not to export the action after all.
fn not_exported(action: Action) -> wasmtime::Error {
    wasmtime::Error::msg(format!("it does not export `{}`", action.name()))
}

async fn proxy(
    provider: &proxy_redirector::Guest,
    inside: &Accessor<Guest>,
    call: ProxyCall,
) -> wasmtime::Result<Result<ProxyAnswer, proxy_redirector::ProxyError>> {
    let done = |()| ProxyAnswer::Done;
    Ok(match call {
        ProxyCall::Get => {
            let state = provider.call_get(inside).await?;
            state.map(|state| ProxyAnswer::State(state.into()))
        }
        ProxyCall::Set(wanted) => {
            let wanted = wanted.map(Into::into);
            provider.call_set(inside, wanted).await?.map(done)
        }
        ProxyCall::NoProxy => {
            let addresses = provider.call_no_proxy(inside).await?;
            addresses.map(ProxyAnswer::Addresses)
        }
        ProxyCall::SetNoProxy(addresses) => {
            let set = provider.call_set_no_proxy(inside, addresses).await?;
            set.map(done)
        }
        ProxyCall::Apply => provider.call_apply(inside).await?.map(done),
    })
}

async fn boot(
    provider: &boot_config::Guest,
    inside: &Accessor<Guest>,
    call: BootCall,
) -> wasmtime::Result<Result<BootAnswer, String>> {
    Ok(match call {
        BootCall::Get => {
            let settings = provider.call_get(inside).await?;
            settings.map(|settings| {
                let settings = settings.into_iter();
                let plain = |boot_config::Setting { name, value }| BootSetting { name, value };
                BootAnswer::Settings(settings.map(plain).collect())
            })
        }
        BootCall::Compare(wanted) => {
            let compared = provider.call_compare(inside, of_wit(wanted)).await?;
            compared.map(comparison)
        }
        BootCall::Set(wanted) => {
            let before = provider.call_set(inside, of_wit(wanted)).await?;
            before.map(comparison)
        }
    })
}

fn of_wit(settings: Vec<BootSetting>) -> Vec<boot_config::Setting> {
    let settings = settings.into_iter();
    settings
        .map(|BootSetting { name, value }| boot_config::Setting { name, value })
        .collect()
}

fn comparison(comparison: boot_config::Comparison) -> BootAnswer {
    let refused = comparison.refused.into_iter();
    BootAnswer::Comparison(BootComparison {
        changes: comparison.changes,
        refused: refused
            .map(|boot_config::Refusal { name, reason }| (name, reason))
            .collect(),
        foreign: comparison.foreign,
        needs_reboot: comparison.needs_reboot,
    })
}
