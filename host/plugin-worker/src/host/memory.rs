//! How much memory the instances of a worker have, in its process and in the control groups around it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use tokio::sync::Mutex;

use super::groups::ProcessGroups;
use super::session::Session;
use crate::wire::Question;

/// The memory of all instances together, which a policy can change while a process runs.
pub(super) struct InstanceMemory {
    bytes: AtomicUsize,
    /// Held while a process is informed, so that the last value is also the last one to arrive.
    turn: Mutex<()>,
}

impl InstanceMemory {
    pub(super) fn new(bytes: usize) -> InstanceMemory {
        InstanceMemory {
            bytes: AtomicUsize::new(bytes),
            turn: Mutex::default(),
        }
    }

    /// Returns it in bytes.
    pub(super) fn get(&self) -> usize {
        self.bytes.load(SeqCst)
    }

    /// Sets it, and returns whether it was different.
    pub(super) fn set(&self, bytes: usize) -> bool {
        self.bytes.swap(bytes, SeqCst) != bytes
    }

    /// Gives a running process what is set now. Its control groups get more before it uses more, and less after it
    /// uses less.
    pub(super) async fn give(&self, session: &Arc<Session>) {
        let _turn = self.turn.lock().await;
        let bytes = self.get();
        let groups = session.groups.upgrade();
        let grows = groups
            .as_ref()
            .is_some_and(|groups| groups.are_below(bytes));
        if grows {
            limit(groups.as_ref(), bytes).await;
        }
        let question = Question::Memory(u64::try_from(bytes).unwrap_or(u64::MAX));
        // A worker that ends receives the new value when it is started again.
        let _ = session.ask(&question, None).await;
        if !grows {
            limit(groups.as_ref(), bytes).await;
        }
    }
}

async fn limit(groups: Option<&Arc<ProcessGroups>>, bytes: usize) {
    let Some(groups) = groups.cloned() else {
        return;
    };
    // The kernel may have to take memory back first.
    let limited = tokio::task::spawn_blocking(move || groups.set_memory(bytes)).await;
    if let Ok(Err(reason)) = limited {
        tracing::warn!("until the process that runs plugins is started again, {reason}");
    }
}
