//! Where a call of a plugin comes from.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde::{Deserialize, Serialize};

use crate::{CallUsage, Caller, CallerScope};

/// Where a call comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// On whose behalf the plugin is called.
    pub caller: Caller,
    /// How many plugins are waiting for the call: 0 for a request.
    pub depth: u32,
}

impl Origin {
    /// Creates the origin of a request, or of a call by the host itself.
    #[must_use]
    pub fn outside(scope: CallerScope) -> Origin {
        Origin {
            caller: Caller::from_scope(scope),
            depth: 0,
        }
    }

    /// Returns the origin of an action that the plugin `name` requests while it serves a call of this origin.
    #[must_use]
    pub fn through(&self, name: &str) -> Origin {
        Origin {
            caller: self.caller.through(name),
            depth: self.depth.saturating_add(1),
        }
    }
}

/// The call that an instance serves.
#[derive(Debug, Clone)]
pub struct ServedCall {
    /// The call's origin.
    pub origin: Origin,
    /// The number of the call on the host. A runtime in another process refers to the call by this number; what it says
    /// about the origin is not trusted.
    pub call: u64,
    /// The place for what the call uses, if the caller shows it; absent on devices.
    pub usage: Option<Arc<CallUsage>>,
}

impl ServedCall {
    /// No call: the instance is starting.
    pub const NO_CALL: u64 = 0;

    /// Creates the host's next call, with this origin.
    #[must_use]
    pub fn next(origin: Origin) -> ServedCall {
        static LATEST: AtomicU64 = AtomicU64::new(ServedCall::NO_CALL);
        ServedCall {
            origin,
            call: LATEST.fetch_add(1, Relaxed) + 1,
            usage: None,
        }
    }

    /// Creates the placeholder for an instance that is starting.
    #[must_use]
    pub fn placeholder() -> ServedCall {
        ServedCall {
            origin: Origin::outside(CallerScope::NoCall),
            call: ServedCall::NO_CALL,
            usage: None,
        }
    }
}
