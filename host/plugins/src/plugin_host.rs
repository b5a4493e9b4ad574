//! The host of one plugin, as its instances reach it from where they run.

use std::sync::Arc;

use device_types::PluginLogLevel;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use plugin_protocol::text::{LONGEST, one_line};
use plugin_protocol::{
    CallRefusal, CapabilityAnswer, CapabilityCall, Handle, HostCalls, InstanceId, LogEntry,
    LogLevel, ServedCall,
};

use crate::actions::Actions;
use crate::holdings::InstanceHoldings;
use crate::identify::Identify;
use crate::plugin_context::PluginContext;
use crate::provision::InstanceCall;

/// The host's end for all instances of one version of a plugin.
pub(crate) struct PluginHost {
    pub(crate) context: Arc<PluginContext>,
    pub(crate) instances: Arc<InstanceHoldings>,
    pub(crate) identify: Identify,
    pub(crate) actions: Actions,
}

impl HostCalls for PluginHost {
    fn ask(
        &self,
        instance: InstanceId,
        serving: &ServedCall,
        call: CapabilityCall,
    ) -> BoxFuture<'static, Result<CapabilityAnswer, CallRefusal>> {
        let holdings = self.instances.of(instance);
        let (context, origin) = (Arc::clone(&self.context), serving.origin.clone());
        let (identify, actions) = (self.identify.clone(), self.actions.clone());
        async move {
            let holdings = holdings.ok_or_else(|| "too many instances call the host".to_owned())?;
            let instance_call = InstanceCall {
                plugin: &context,
                holdings: &holdings,
                origin: &origin,
                identify: &identify,
                actions: &actions,
            };
            let answer = instance_call.carry_out(call).await;
            answer.map_err(|refusal| refusal.to_string().into())
        }
        .boxed()
    }

    fn release(&self, instance: InstanceId, handle: Handle) {
        self.instances.release(instance, handle);
    }

    fn end(&self, instance: InstanceId) {
        self.instances.end(instance);
    }

    fn log(&self, entry: LogEntry) {
        let plugin: &str = &self.context.name;
        if !self.context.share.log.lines.take(plugin) {
            return;
        }
        let (level, line) = match entry {
            LogEntry::Lost(lines) => {
                let line = format!("{lines} more lines of this call were not written");
                tracing::warn!(plugin, "{line}");
                (PluginLogLevel::Warn, line)
            }
            LogEntry::Line(level, line) => {
                let line = one_line(&line, LONGEST);
                let level = match level {
                    LogLevel::Debug => {
                        tracing::debug!(plugin, "{line}");
                        PluginLogLevel::Debug
                    }
                    LogLevel::Info => {
                        tracing::info!(plugin, "{line}");
                        PluginLogLevel::Info
                    }
                    LogLevel::Warn => {
                        tracing::warn!(plugin, "{line}");
                        PluginLogLevel::Warn
                    }
                    LogLevel::Error => {
                        tracing::error!(plugin, "{line}");
                        PluginLogLevel::Error
                    }
                };
                (level, line)
            }
        };
        self.context.share.log.recent.add(plugin, level, line);
    }
}
