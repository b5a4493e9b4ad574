//! Where a call of a plugin comes from.

use plugin_protocol::{Caller, CallerScope};

/// Where a call comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) caller: Caller,
    /// How many plugins wait for the call: 0 for a request's.
    pub(crate) depth: u32,
}

impl Origin {
    /// A request, or the host itself.
    pub(crate) fn outside(scope: CallerScope) -> Origin {
        Origin {
            caller: Caller::of(scope),
            depth: 0,
        }
    }

    /// The plugin `name`, which has an action done while it serves a call of this origin.
    pub(crate) fn through(&self, name: &str) -> Origin {
        Origin {
            caller: self.caller.through(name),
            depth: self.depth.saturating_add(1),
        }
    }
}
