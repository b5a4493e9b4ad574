//! Calls to the actions that a component exports: from plain data to its functions and back.

use plugin_protocol::{
    ACTION_BYTES, Action, ActionAnswer, ActionCall, BootAnswer, BootCall, BootComparison,
    BootSetting, EventAnswer, EventCall, InstalledRelease, OsAnswer, OsCall, OsStatus, OwnCall,
    PendingUpdate, PluginEvent, ProxyAnswer, ProxyCall, ServiceChange, TargetProgress,
};

use crate::bindings::exports::platform::supervisor::{
    boot_config, events, os_update, proxy_redirector,
};
use crate::exports::Exports;
use crate::guest::Guest;
use crate::instance_host::Answer;
use wasmtime::component::Accessor;

impl Exports {
    /// Calls the component's function for `call`.
    pub(crate) async fn act(
        &self,
        inside: &Accessor<Guest>,
        call: ActionCall,
    ) -> wasmtime::Result<ActionAnswer> {
        let action = call.action();
        Ok(match call {
            ActionCall::Identify => {
                let provider = exported(self.identify.as_ref(), action)?;
                ActionAnswer::Identify(provider.call_identify(inside).await?)
            }
            ActionCall::Proxy(call) => {
                let provider = exported(self.proxy_redirector.as_ref(), action)?;
                let answer = proxy(provider, inside, call).await?;
                ActionAnswer::Proxy(answer.map_err(Into::into))
            }
            ActionCall::BootConfig(call) => {
                let provider = exported(self.boot_config.as_ref(), action)?;
                ActionAnswer::BootConfig(boot(provider, inside, call).await?)
            }
            ActionCall::Os(call) => {
                let provider = exported(self.os_update.as_ref(), action)?;
                ActionAnswer::Os(os(provider, inside, call).await?)
            }
            ActionCall::Event(call) => {
                let watcher = exported(self.events.as_ref(), action)?;
                let answer = watcher.call_handle(inside, call.into()).await?;
                ActionAnswer::Event(answer.map(Into::into))
            }
            ActionCall::Own(OwnCall { name, input }) => {
                let provider = exported(self.action_provider.as_ref(), action)?;
                let answer = provider.call_call(inside, name, input).await?;
                ActionAnswer::Own(answer.and_then(bounded))
            }
        })
    }
}

/// A longer output does not fit into a message to the host.
fn bounded(output: Vec<u8>) -> Result<Vec<u8>, String> {
    let (length, limit) = (output.len(), ACTION_BYTES >> 10);
    if length > ACTION_BYTES {
        return Err(format!(
            "its output has {length} bytes, more than {limit} KiB"
        ));
    }
    Ok(output)
}

/// Returns the functions of the action, unless the component turns out not to export it after all.
fn exported<F>(functions: Option<&F>, action: Action) -> wasmtime::Result<&F> {
    functions.ok_or_else(|| wasmtime::Error::msg(format!("it does not export `{action}`")))
}

async fn proxy(
    provider: &proxy_redirector::Guest,
    inside: &Accessor<Guest>,
    call: ProxyCall,
) -> Answer<ProxyAnswer, proxy_redirector::ProxyError> {
    let done = |()| ProxyAnswer::Done;
    Ok(match call {
        ProxyCall::Get => {
            let state = provider.call_get(inside).await?;
            state.map(|state| ProxyAnswer::State(state.into()))
        }
        ProxyCall::Set(target) => {
            let target = target.map(Into::into);
            provider.call_set(inside, target).await?.map(done)
        }
        ProxyCall::NoProxy => {
            let addresses = provider.call_no_proxy(inside).await?;
            addresses.map(ProxyAnswer::Addresses)
        }
        ProxyCall::SetNoProxy(addresses) => {
            let result = provider.call_set_no_proxy(inside, addresses).await?;
            result.map(done)
        }
        ProxyCall::Apply => provider.call_apply(inside).await?.map(done),
    })
}

async fn boot(
    provider: &boot_config::Guest,
    inside: &Accessor<Guest>,
    call: BootCall,
) -> Answer<BootAnswer, String> {
    Ok(match call {
        BootCall::Get => {
            let settings = provider.call_get(inside).await?;
            settings.map(|settings| BootAnswer::Settings(converted(settings)))
        }
        BootCall::Compare(target) => {
            let comparison = provider.call_compare(inside, converted(target)).await?;
            comparison.map(Into::into)
        }
        BootCall::Set(target) => {
            let before = provider.call_set(inside, converted(target)).await?;
            before.map(Into::into)
        }
    })
}

async fn os(
    provider: &os_update::Guest,
    inside: &Accessor<Guest>,
    call: OsCall,
) -> Answer<OsAnswer, String> {
    let done = |()| OsAnswer::Done;
    Ok(match call {
        OsCall::Status => {
            let status = provider.call_status(inside).await?;
            status.map(|status| OsAnswer::Status(status.into()))
        }
        OsCall::Stage { source, version } => {
            let begun = provider.call_stage(inside, source, version).await?;
            begun.map(done)
        }
        OsCall::Activate => provider.call_activate(inside).await?.map(done),
        OsCall::Commit => provider.call_commit(inside).await?.map(done),
        OsCall::RollBack => provider.call_roll_back(inside).await?.map(done),
    })
}

fn converted<A, B: From<A>>(items: Vec<A>) -> Vec<B> {
    items.into_iter().map(Into::into).collect()
}

mirror! { struct BootSetting, boot_config::Setting { name, value } }

impl From<os_update::OsStatus> for OsStatus {
    fn from(status: os_update::OsStatus) -> Self {
        OsStatus {
            running: status.running,
            staged: status.staged,
            committed: status.committed,
            installing: status.installing,
            failure: status.failure,
        }
    }
}

impl From<boot_config::Comparison> for BootAnswer {
    fn from(comparison: boot_config::Comparison) -> Self {
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
}

mirror! { one way struct ServiceChange, events::ServiceChange { app_id, service, status, before } }
mirror! { one way enum TargetProgress, events::TargetProgress { Applying, Reached, Stopped } }
mirror! { one way struct PendingUpdate, events::Update { app_id, app_uuid, services, running_commit, target_commit } }
mirror! { one way struct InstalledRelease, events::InstalledRelease { app_id, app_uuid, services, commit } }

impl From<EventCall> for events::Event {
    fn from(call: EventCall) -> Self {
        match call {
            EventCall::Notice(event) => event.into(),
            EventCall::UpdateGate(update) => events::Event::UpdateGate(update.into()),
            EventCall::HealthGate(release) => events::Event::HealthGate(release.into()),
        }
    }
}

impl From<PluginEvent> for events::Event {
    fn from(event: PluginEvent) -> Self {
        match event {
            PluginEvent::Start(is_first) => events::Event::Start(is_first),
            PluginEvent::Schedule(name) => events::Event::Schedule(name),
            PluginEvent::Services(changes) => events::Event::Services(converted(changes)),
            PluginEvent::Target(progress) => events::Event::Target(progress.into()),
            PluginEvent::Connection(is_there) => events::Event::Connection(is_there),
        }
    }
}

impl From<events::Answer> for EventAnswer {
    fn from(answer: events::Answer) -> Self {
        match answer {
            events::Answer::GoOn => EventAnswer::GoOn,
            events::Answer::Postpone(events::Postponement { reason, seconds }) => {
                EventAnswer::Postpone { reason, seconds }
            }
            events::Answer::Refuse(reason) => EventAnswer::Refuse { reason },
        }
    }
}
