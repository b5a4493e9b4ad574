//! The host, as seen by one instance.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use plugin_protocol::{Call, Handle, HostCalls, InstanceId, LogEntry, ServedCall};

/// The result of a function of `wit/` that can fail. The outer error is for calls that the plugin may not make: it
/// traps.
pub(crate) type Answer<T, E> = wasmtime::Result<Result<T, E>>;

/// The connection between one instance and the host. Clones share it; when the last one is dropped, the host releases
/// what the instance holds.
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
    /// Creates the host for an instance that is starting.
    pub(crate) fn new(calls: Arc<dyn HostCalls>) -> InstanceHost {
        static LATEST: AtomicU64 = AtomicU64::new(0);
        let instance = InstanceId(LATEST.fetch_add(1, Relaxed) + 1);
        InstanceHost {
            link: Arc::new(Link { instance, calls }),
            serving: Arc::new(ServedCall::placeholder()),
        }
    }

    /// Sends a call to the host. An error is for a call that the host refuses, and traps.
    pub(crate) async fn ask<C: Call>(&self, call: C) -> wasmtime::Result<C::Answer> {
        let Link { instance, calls } = &*self.link;
        let answer = calls.ask(*instance, &self.serving, call.into()).await;
        let answer = answer.map_err(wasmtime::Error::new)?;
        C::answer(answer)
            .ok_or_else(|| wasmtime::Error::msg("the host's answer does not match the call"))
    }

    /// Like [`Self::ask`], for calls that the host may answer with an error: that error goes to the guest.
    pub(crate) async fn try_ask<C, T, E, F: From<E>>(&self, call: C) -> Answer<T, F>
    where
        C: Call<Answer = Result<T, E>>,
    {
        let answer = self.ask(call).await?;
        Ok(answer.map_err(Into::into))
    }

    /// Releases the object with this handle that the instance holds.
    pub(crate) fn release(&self, handle: Handle) {
        self.link.calls.release(self.link.instance, handle);
    }

    /// Sends an entry to the log.
    pub(crate) fn log(&self, entry: LogEntry) {
        self.link.calls.log(entry);
    }

    /// Returns the instance's number.
    pub(crate) fn instance(&self) -> InstanceId {
        self.link.instance
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.calls.end(self.instance);
    }
}
