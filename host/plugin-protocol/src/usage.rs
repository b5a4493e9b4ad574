//! What a call uses of its limits, for programs that show it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use crate::Limits;

/// What a call uses of its limits, while it lasts and after it. A caller that sets [`ServedCall::usage`] can read here
/// what the runtime records. Only a runtime in the same process records anything: nothing of this is in a message to
/// another process.
///
/// [`ServedCall::usage`]: crate::ServedCall::usage
#[derive(Debug, Default)]
pub struct CallUsage {
    /// The limits in force; absent until an instance begins to serve the call.
    limits: OnceLock<Limits>,
    /// The most processor time that has counted against the limit, in nanoseconds.
    cpu: AtomicU64,
    /// The most linear memory, in bytes.
    memory: AtomicUsize,
}

/// What a call has used up to a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsedResources {
    /// The processor time as it counts against the limit. The limit of a stream is for the work on one piece, so this is
    /// the time of the piece that took the most.
    pub cpu: Duration,
    /// The linear memory that the instance has reached, in bytes.
    pub memory: usize,
    /// The limits in force.
    pub limits: Limits,
}

impl CallUsage {
    /// Records that an instance with these limits begins to serve the call.
    pub fn begin(&self, limits: &Limits) {
        // A call is served by one instance.
        let _ = self.limits.set(limits.clone());
    }

    /// Records the processor time, in nanoseconds, that counts against the limit now. Less than before is ignored.
    pub fn record_cpu(&self, nanoseconds: u64) {
        self.cpu.fetch_max(nanoseconds, Relaxed);
    }

    /// Records the linear memory that the instance has now, in bytes. Less than before is ignored.
    pub fn record_memory(&self, bytes: usize) {
        self.memory.fetch_max(bytes, Relaxed);
    }

    /// Returns what the call has used so far; `None` if no instance has served it.
    #[must_use]
    pub fn read(&self) -> Option<UsedResources> {
        let limits = self.limits.get()?.clone();
        Some(UsedResources {
            cpu: Duration::from_nanos(self.cpu.load(Relaxed)),
            memory: self.memory.load(Relaxed),
            limits,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_has_used_nothing_until_it_is_served_and_then_the_most_that_it_reached() {
        let limits = Limits {
            memory: 16 << 20,
            cpu: Duration::from_secs(1),
            wall: Duration::from_secs(10),
            body: 1 << 20,
            concurrency: 8,
        };
        let usage = CallUsage::default();
        assert_eq!(usage.read(), None);
        usage.begin(&limits);
        for (cpu, memory) in [(7, 100), (3, 200), (5, 150)] {
            usage.record_cpu(cpu);
            usage.record_memory(memory);
        }
        let expected = UsedResources {
            cpu: Duration::from_nanos(7),
            memory: 200,
            limits,
        };
        assert_eq!(usage.read(), Some(expected));
    }
}
