//! The bytes that one plugin's calls to the host may hold at a time. The worker and the host each count them: the
//! worker is not trusted.

use std::sync::Arc;

use plugin_protocol::{CapabilityCall, HOST_ANSWER_BYTES};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The longest answer of the calls that may get more than [`SHORT`], in bytes: a megabyte of content, and what belongs
/// to it.
const LONG: u32 = (1 << 20) + (128 << 10);
/// The longest answer of all other calls, in bytes: a value of 64 KiB, and what belongs to it.
const SHORT: u32 = 96 << 10;

/// The part of a budget that a call has. It is free again when the last owner drops it: the call itself, and its message
/// in a queue.
pub(crate) type BudgetPart = Arc<OwnedSemaphorePermit>;

/// Creates the budget for the answers of one plugin.
pub(crate) fn for_answers() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(HOST_ANSWER_BYTES))
}

/// Returns the longest answer that this call can get, in bytes.
pub(crate) fn longest_answer(call: &CapabilityCall) -> u32 {
    match call {
        CapabilityCall::StoreKeys(_)
        | CapabilityCall::CloudRecords(_)
        | CapabilityCall::ProxyRequest(_)
        | CapabilityCall::ActionRequest(_)
        | CapabilityCall::ApiSend(_)
        | CapabilityCall::DbusCall(_)
        | CapabilityCall::HttpSend(_) => LONG,
        _ => SHORT,
    }
}

/// Waits until the budget for answers has room for this many bytes. Returns `None` if the budget is closed.
pub(crate) async fn room_for_answer(budget: Arc<Semaphore>, bytes: u32) -> Option<BudgetPart> {
    budget.acquire_many_owned(bytes).await.ok().map(Arc::new)
}
