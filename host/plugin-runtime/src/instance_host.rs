//! The host, as one instance has it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use plugin_protocol::{Call, Handle, HostCalls, InstanceId, LogEntry, ServedCall};

use crate::guest::Answer;

/// What stands behind one instance. Cloning shares it; the host lets go of what the instance holds with the last.
#[derive(Clone)]
pub(crate) struct InstanceHost {
    link: Arc<Link>,
    /// The call that the instance serves.
    pub(crate) serving: Arc<ServedCall>,
}

struct Link {
    instance: InstanceId,
    calls: Arc<dyn HostCalls>,
}

impl InstanceHost {
    /// For an instance that starts.
    pub(crate) fn new(calls: Arc<dyn HostCalls>) -> InstanceHost {
        static LATEST: AtomicU64 = AtomicU64::new(0);
        let instance = InstanceId(LATEST.fetch_add(1, Relaxed) + 1);
        InstanceHost {
            link: Arc::new(Link { instance, calls }),
            serving: Arc::new(ServedCall::nothing()),
        }
    }

    /// Has the host do what is asked for. An error is for a call that is not the plugin's to make, and traps.
    pub(crate) async fn ask<C: Call>(&self, call: C) -> wasmtime::Result<C::Answer> {
        let Link { instance, calls } = &*self.link;
        let answer = calls.ask(*instance, &self.serving, call.into()).await;
        let answer = answer.map_err(wasmtime::Error::msg)?;
        C::answer(answer)
            .ok_or_else(|| wasmtime::Error::msg("the host's answer does not match the call"))
    }

    /// As [`Self::ask`], where the host may answer an error: it is the guest's to read.
    pub(crate) async fn try_ask<C, T, E, F: From<E>>(&self, call: C) -> Answer<T, F>
    where
        C: Call<Answer = Result<T, E>>,
    {
        let answer = self.ask(call).await?;
        Ok(answer.map_err(Into::into))
    }

    /// Lets go of what the instance holds by this handle.
    pub(crate) fn release(&self, handle: Handle) {
        self.link.calls.release(self.link.instance, handle);
    }

    /// Tells the log.
    pub(crate) fn log(&self, entry: LogEntry) {
        self.link.calls.log(entry);
    }

    /// Which instance it is.
    pub(crate) fn instance(&self) -> InstanceId {
        self.link.instance
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.calls.end(self.instance);
    }
}
