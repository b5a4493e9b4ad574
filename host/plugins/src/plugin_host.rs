//! The host of one plugin, as its instances reach it from where they run.

use std::collections::HashMap;
use std::sync::Arc;

use device_types::PluginLogLevel;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use plugin_protocol::text::{LONGEST, one_line};
use plugin_protocol::{
    CallRefusal, CapabilityAnswer, CapabilityCall, Handle, HostCalls, InstanceId, JournalAnswer,
    LogEntry, LogLevel, ServedCall,
};

use crate::holdings::Holdings;
use crate::holdings::journal::JournalBody;
use crate::plugin_context::PluginContext;

/// How many instances of one plugin can hold something at a time: more than any runtime has.
const MOST: usize = 4096;

/// The host's end for all instances of one version of a plugin.
pub(crate) struct PluginHost {
    pub(crate) context: Arc<PluginContext>,
    /// What each instance holds, if it has made calls.
    instances: Mutex<HashMap<InstanceId, Arc<Holdings>>>,
}

impl PluginHost {
    pub(crate) fn new(context: PluginContext) -> PluginHost {
        PluginHost {
            context: Arc::new(context),
            instances: Mutex::default(),
        }
    }

    /// Returns the body for a stream of the journal that a plugin returned, if the plugin holds it.
    pub(crate) fn journal(&self, answer: &JournalAnswer) -> Option<JournalBody> {
        let holdings = self.instances.lock().get(&answer.instance).cloned()?;
        let source = holdings.journal(answer.reader).ok()?;
        Some(JournalBody::new(source, answer.used))
    }

    fn holdings(&self, instance: InstanceId) -> Option<Arc<Holdings>> {
        let mut instances = self.instances.lock();
        if instances.len() >= MOST && !instances.contains_key(&instance) {
            return None;
        }
        Some(Arc::clone(instances.entry(instance).or_default()))
    }
}

impl HostCalls for PluginHost {
    fn ask(
        &self,
        instance: InstanceId,
        serving: &ServedCall,
        call: CapabilityCall,
    ) -> BoxFuture<'static, Result<CapabilityAnswer, CallRefusal>> {
        let holdings = self.holdings(instance);
        let (context, origin) = (Arc::clone(&self.context), serving.origin.clone());
        async move {
            let holdings = holdings.ok_or_else(|| "too many instances call the host".to_owned())?;
            let answer = context.provide(&holdings, &origin, call).await;
            answer.map_err(|refusal| refusal.to_string().into())
        }
        .boxed()
    }

    fn release(&self, instance: InstanceId, handle: Handle) {
        let holdings = self.instances.lock().get(&instance).cloned();
        if let Some(holdings) = holdings {
            holdings.release(handle);
        }
    }

    fn end(&self, instance: InstanceId) {
        // This may take time, and must not delay the others.
        let ended = self.instances.lock().remove(&instance);
        drop(ended);
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
