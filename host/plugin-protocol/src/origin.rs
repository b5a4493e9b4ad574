//! Where a call of a plugin comes from.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde::{Deserialize, Serialize};

use crate::{Caller, CallerScope};

/// Where a call comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Who the plugin is called for.
    pub caller: Caller,
    /// How many plugins wait for the call: 0 for a request's.
    pub depth: u32,
}

impl Origin {
    /// A request, or the host itself.
    #[must_use]
    pub fn outside(scope: CallerScope) -> Origin {
        Origin {
            caller: Caller::of(scope),
            depth: 0,
        }
    }

    /// The plugin `name`, which has an action done while it serves a call of this origin.
    #[must_use]
    pub fn through(&self, name: &str) -> Origin {
        Origin {
            caller: self.caller.through(name),
            depth: self.depth.saturating_add(1),
        }
    }
}

/// The call that an instance serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedCall {
    /// Where it comes from.
    pub origin: Origin,
    /// Which of the host's calls it is. A runtime in another process names it so, and its word on the origin is not
    /// taken.
    pub call: u64,
}

impl ServedCall {
    /// None: the instance starts.
    pub const NO_CALL: u64 = 0;

    /// The host's next call, of this origin.
    #[must_use]
    pub fn next(origin: Origin) -> ServedCall {
        static LATEST: AtomicU64 = AtomicU64::new(ServedCall::NO_CALL);
        ServedCall {
            origin,
            call: LATEST.fetch_add(1, Relaxed) + 1,
        }
    }

    /// What an instance serves that starts.
    #[must_use]
    pub fn nothing() -> ServedCall {
        ServedCall {
            origin: Origin::outside(CallerScope::NoCall),
            call: ServedCall::NO_CALL,
        }
    }
}
