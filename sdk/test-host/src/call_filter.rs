//! Lets a tool see what plugins request from their host, and change the answers.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use plugin_protocol::{
    Blueprint, CallRefusal, CapabilityAnswer, CapabilityCall, GuestCode, GuestPlugin, Handle,
    HostCalls, InstanceId, LogEntry, ServedCall,
};

use crate::wrapped_runtime::PluginWrapper;

/// Sees what plugins request from their host, and changes what they are answered.
pub trait CallFilter: Send + Sync + 'static {
    /// Returns what changes the answer to this call of an instance; `None` if the answer stays as it is.
    fn change(&self, instance: InstanceId, call: &CapabilityCall) -> Option<AnswerChange>;

    /// Sees an entry that a plugin writes to the log.
    fn log(&self, entry: &LogEntry);

    /// Sees that an instance has ended.
    fn end(&self, instance: InstanceId);
}

/// Replaces the host's answer to a call by another answer to it, which may take time.
pub type AnswerChange =
    Box<dyn FnOnce(CapabilityAnswer) -> BoxFuture<'static, CapabilityAnswer> + Send>;

/// Has a filter see and change what each plugin is answered.
pub(crate) struct FilterCalls(pub(crate) Arc<dyn CallFilter>);

impl PluginWrapper for FilterCalls {
    fn plugin(
        &self,
        code: &dyn GuestCode,
        blueprint: Blueprint,
        host: Arc<dyn HostCalls>,
    ) -> Arc<dyn GuestPlugin> {
        let filter = Arc::clone(&self.0);
        code.plugin(blueprint, Arc::new(FilteredCalls { host, filter }))
    }
}

struct FilteredCalls {
    host: Arc<dyn HostCalls>,
    filter: Arc<dyn CallFilter>,
}

impl HostCalls for FilteredCalls {
    fn ask(
        &self,
        instance: InstanceId,
        serving: &ServedCall,
        call: CapabilityCall,
    ) -> BoxFuture<'static, Result<CapabilityAnswer, CallRefusal>> {
        let change = self.filter.change(instance, &call);
        let answering = self.host.ask(instance, serving, call);
        match change {
            Some(change) => async move { Ok(change(answering.await?).await) }.boxed(),
            None => answering,
        }
    }

    fn release(&self, instance: InstanceId, handle: Handle) {
        self.host.release(instance, handle);
    }

    fn end(&self, instance: InstanceId) {
        self.filter.end(instance);
        self.host.end(instance);
    }

    fn log(&self, entry: LogEntry) {
        self.filter.log(&entry);
        self.host.log(entry);
    }
}
