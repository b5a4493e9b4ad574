//! Lets a tool see what plugins request from their host, and change the answers: between the runtime and the host, so
//! that neither of the two knows of it.

use std::fs::File;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use plugin_protocol::{
    Blueprint, CallRefusal, CapabilityAnswer, CapabilityCall, ComponentFacts, GuestCode,
    GuestPlugin, GuestRuntime, Handle, HostCalls, InstanceId, LogEntry, ServedCall,
};

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

/// A runtime whose plugins receive filtered answers.
pub(crate) struct FilteredRuntime {
    pub(crate) runtime: Arc<dyn GuestRuntime>,
    pub(crate) filter: Arc<dyn CallFilter>,
}

impl GuestRuntime for FilteredRuntime {
    fn open(&self, file: File) -> BoxFuture<'static, Result<Arc<dyn GuestCode>, String>> {
        let opening = self.runtime.open(file);
        let filter = Arc::clone(&self.filter);
        async move {
            let code = opening.await?;
            Ok(Arc::new(FilteredCode { code, filter }) as Arc<dyn GuestCode>)
        }
        .boxed()
    }

    fn slots(&self) -> usize {
        self.runtime.slots()
    }

    fn set_memory(&self, bytes: usize) {
        self.runtime.set_memory(bytes);
    }

    fn problems(&self) -> Vec<String> {
        self.runtime.problems()
    }
}

struct FilteredCode {
    code: Arc<dyn GuestCode>,
    filter: Arc<dyn CallFilter>,
}

impl GuestCode for FilteredCode {
    fn facts(&self) -> &ComponentFacts {
        self.code.facts()
    }

    fn plugin(&self, blueprint: Blueprint, host: Arc<dyn HostCalls>) -> Arc<dyn GuestPlugin> {
        let filter = Arc::clone(&self.filter);
        self.code
            .plugin(blueprint, Arc::new(FilteredCalls { host, filter }))
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
