//! The bytes that calls to the host may hold at a time: those of one plugin, and those of all plugins of a worker. The
//! worker and the host each count them: the worker is not trusted.

use std::sync::Arc;

use plugin_protocol::{
    ALL_HOST_ANSWER_BYTES, ALL_HOST_CALL_BYTES, Bound, CapabilityCall, HOST_ANSWER_BYTES,
    HOST_CALL_BYTES,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The longest answer of the calls that may get more than [`SHORT`], in bytes: a megabyte of content, and what belongs
/// to it.
const LONG: u32 = (1 << 20) + (128 << 10);
/// The longest answer of all other calls, in bytes: a value of 64 KiB, and what belongs to it.
const SHORT: u32 = 96 << 10;

/// The part that a call has of the budget of its plugin and of that of all. It is free again when the last owner drops
/// it: the call itself, and its message in a queue.
pub(crate) type BudgetPart = Arc<[OwnedSemaphorePermit; 2]>;

/// A number of bytes for arguments, and one for answers.
#[derive(Debug, Clone)]
pub(crate) struct CallBudget {
    arguments: Arc<Semaphore>,
    answers: Arc<Semaphore>,
}

impl CallBudget {
    /// Creates the budget of one plugin.
    pub(crate) fn for_plugin() -> Self {
        CallBudget {
            arguments: Arc::new(Semaphore::new(HOST_CALL_BYTES)),
            answers: Arc::new(Semaphore::new(HOST_ANSWER_BYTES)),
        }
    }

    /// Creates the budget of all plugins of a worker.
    pub(crate) fn for_worker() -> Self {
        CallBudget {
            arguments: Arc::new(Semaphore::new(ALL_HOST_CALL_BYTES)),
            answers: Arc::new(Semaphore::new(ALL_HOST_ANSWER_BYTES)),
        }
    }

    /// Returns the host's count for what has this budget in the worker: twice the arguments, since calls that the worker
    /// has cancelled end a little later here.
    pub(crate) fn for_host(self) -> Self {
        let more = |arguments: &Semaphore| Semaphore::new(2 * arguments.available_permits());
        CallBudget {
            arguments: Arc::new(more(&self.arguments)),
            answers: self.answers,
        }
    }

    /// Takes room for arguments of this many bytes here, in the budget of a plugin, and in that of all.
    ///
    /// # Errors
    /// Which of the two has no room.
    pub(crate) fn for_arguments(&self, all: &Self, bytes: u32) -> Result<BudgetPart, Bound> {
        let take = |budget: &Arc<Semaphore>| Arc::clone(budget).try_acquire_many_owned(bytes);
        let own = take(&self.arguments).map_err(|_| Bound::HostCalls(HOST_CALL_BYTES))?;
        let all = take(&all.arguments);
        let all = all.map_err(|_| Bound::AllHostCalls(ALL_HOST_CALL_BYTES))?;
        Ok(Arc::new([own, all]))
    }

    /// Waits for room for an answer of this many bytes here, in the budget of a plugin, and in that of all. Returns
    /// `None` if one of them is closed.
    pub(crate) fn for_answer(
        &self,
        all: &Self,
        bytes: u32,
    ) -> impl Future<Output = Option<BudgetPart>> + Send + use<> {
        let (own, all) = (Arc::clone(&self.answers), Arc::clone(&all.answers));
        async move {
            let own = own.acquire_many_owned(bytes).await.ok()?;
            let all = all.acquire_many_owned(bytes).await.ok()?;
            Some(Arc::new([own, all]))
        }
    }
}

/// Returns the longest answer that this call can get, in bytes.
pub(crate) fn longest_answer(call: &CapabilityCall) -> u32 {
    match call {
        CapabilityCall::StoreKeys(_)
        | CapabilityCall::CloudRecords(_)
        | CapabilityCall::ProxyRequest(_)
        | CapabilityCall::ActionsCall(_)
        | CapabilityCall::ApiSend(_)
        | CapabilityCall::DbusCall(_)
        | CapabilityCall::HttpSend(_) => LONG,
        _ => SHORT,
    }
}
