//! What the host does for plugins, in response to the calls of `plugin_protocol`. The guarantees of each call are in
//! `wit/`.
//!
//! Each call is checked here against the grants of the calling plugin, although only granted capabilities are linked:
//! the calling instance belongs to the plugin, so its word is not trusted.

mod actions;
mod api;
mod cloud;
mod dbus;
mod gpio;
pub(crate) mod gpio_lines;
pub(crate) mod hardware;
mod http;
pub(crate) mod i2c;
pub(crate) mod journal;
pub(crate) mod led;
pub(crate) mod led_memory;
pub(crate) mod metrics;
pub(crate) mod report;
pub(crate) mod serial;
mod store;
mod units;
pub(crate) mod update_lock;

use std::sync::Arc;

use ::http::Method;
use plugin_protocol::{
    CapabilityAnswer as Answer, CapabilityCall as Call, Handle, Origin, ProxyRequest, StoreDelete,
    StoreGet, StoreKeys, StoreSet,
};

use crate::config::{Condition, ValueChange};
use crate::holdings::Holdings;
use crate::plugin_context::PluginContext;
use crate::proxy;
use plugin_manifest::Capability;

/// A call that no instance makes if only granted capabilities are linked for it: the call gets no answer, and the
/// instance ends.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error(
        "the plugin `{plugin}` called `{call}`, which takes the capability `{capability}`, and the policy does not grant it"
    )]
    Grant {
        plugin: String,
        call: &'static str,
        capability: Capability,
    },
    #[error("the instance does not hold {0:?}, or not as that")]
    Handle(Handle),
    #[error(
        "the instance claims to have used {used} bytes of a stream, which is not what it was given"
    )]
    Position { used: u64 },
}

/// Returns the method of a plugin's request if it is one of `allowed`.
fn method_of(name: &str, allowed: &[Method]) -> Option<Method> {
    let method = Method::from_bytes(name.as_bytes()).ok()?;
    allowed.contains(&method).then_some(method)
}

impl PluginContext {
    /// Checks that the policy grants the plugin what the call requires.
    fn check(&self, call: &Call) -> Result<(), Refusal> {
        match call.capability() {
            Some(capability) if !self.grants.grants.contains(&capability) => Err(Refusal::Grant {
                plugin: self.name.to_string(),
                call: call.name(),
                capability,
            }),
            _ => Ok(()),
        }
    }

    /// Carries out a call from an instance of the plugin that holds `holdings` and serves a call of this origin.
    pub(crate) async fn provide(
        self: &Arc<Self>,
        holdings: &Holdings,
        origin: &Origin,
        call: Call,
    ) -> Result<Answer, Refusal> {
        self.check(&call)?;
        Ok(match call {
            Call::DeviceIdentity(_) => Answer::DeviceIdentity(self.services.device.identity()),
            Call::DeviceState(_) => Answer::DeviceState(self.services.device.state().to_string()),
            Call::StoreGet(StoreGet { key }) => {
                let value = self.with_data(move |data, plugin| data.get(plugin, &key));
                Answer::StoreGet(value.await)
            }
            Call::StoreSet(StoreSet {
                key,
                value,
                lifetime,
            }) => {
                let result = self.with_data(move |data, plugin| {
                    let change = ValueChange {
                        lifetime,
                        ..ValueChange::set(&value)
                    };
                    data.change(plugin, &key, &change)
                });
                Answer::StoreSet(result.await.map(|_| ()))
            }
            Call::StoreCompareAndSet(call) => {
                let result = self.with_data(move |data, plugin| {
                    let change = ValueChange {
                        condition: Condition::Holds(call.expected.as_deref()),
                        value: call.value.as_deref(),
                        lifetime: call.lifetime,
                    };
                    data.change(plugin, &call.key, &change)
                });
                Answer::StoreCompareAndSet(result.await)
            }
            Call::StoreDelete(StoreDelete { key }) => {
                let result = self.with_data(move |data, plugin| data.delete(plugin, &key));
                Answer::StoreDelete(result.await)
            }
            Call::StoreKeys(StoreKeys { prefix }) => {
                let keys = self.with_data(move |data, plugin| data.keys(plugin, &prefix));
                Answer::StoreKeys(keys.await)
            }
            Call::LedNames(_) => Answer::LedNames(self.led_names().await),
            Call::LedOpen(call) => Answer::LedOpen(self.open_led(holdings, call).await),
            Call::LedSet(call) => Answer::LedSet(led::set_led(holdings, call).await?),
            Call::CloudRecords(call) => Answer::CloudRecords(self.records(call).await),
            Call::CloudQueue(call) => Answer::CloudQueue(self.queue(call).await),
            Call::UnitQuery(call) => Answer::UnitQuery(self.unit(call).await),
            Call::UnitRestart(call) => Answer::UnitRestart(self.restart_unit(call).await),
            Call::JournalOpen(call) => Answer::JournalOpen(self.open_journal(holdings, call).await),
            Call::JournalRead(call) => Answer::JournalRead(journal::read(holdings, call).await?),
            Call::IdentifyWindow(_) => Answer::IdentifyWindow(self.identify.remaining_ms()),
            Call::Identify(_) => {
                self.identify.start(origin.through(&self.name));
                Answer::Identify(self.identify.ended().await)
            }
            Call::ProxyRequest(ProxyRequest { call }) => {
                let origin = origin.through(&self.name);
                Answer::ProxyRequest(proxy::call(&self.actions, origin, call).await)
            }
            Call::LockAcquire(call) => {
                Answer::LockAcquire(self.acquire_locks(holdings, call).await)
            }
            Call::HostNameGet(_) => Answer::HostNameGet(self.services.host_name.get().await),
            Call::GaugeSet(call) => Answer::GaugeSet(self.set_gauge(call)),
            Call::CounterAdd(call) => Answer::CounterAdd(self.add_to_counter(call)),
            Call::ReportFieldSet(call) => Answer::ReportFieldSet(self.set_field(call)),
            Call::ReportFieldRemove(call) => Answer::ReportFieldRemove(self.remove_field(call)),
            Call::ActionRequest(call) => {
                Answer::ActionRequest(self.call_action(origin, call).await)
            }
            Call::ApiSend(call) => Answer::ApiSend(self.request(origin, call).await),
            Call::SerialOpen(call) => Answer::SerialOpen(self.open_serial(holdings, call).await),
            Call::SerialRead(call) => {
                Answer::SerialRead(serial::read_serial(holdings, call).await?)
            }
            Call::SerialWrite(call) => {
                Answer::SerialWrite(serial::write_serial(holdings, call).await?)
            }
            Call::DbusCall(call) => Answer::DbusCall(self.call_method(call).await),
            Call::GpioRead(call) => Answer::GpioRead(self.read_line(call).await),
            Call::GpioWrite(call) => Answer::GpioWrite(self.write_line(call).await),
            Call::GpioWait(call) => Answer::GpioWait(self.wait_for_edge(holdings, call).await),
            Call::I2cTransfer(call) => Answer::I2cTransfer(self.transfer(call).await),
            Call::HttpSend(call) => Answer::HttpSend(self.send(call).await),
            Call::HostNameSet(call) => {
                Answer::HostNameSet(self.services.host_name.set(call.name).await)
            }
        })
    }
}

#[cfg(test)]
mod tests;
