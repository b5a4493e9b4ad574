//! Calls of instances that the host refuses.

use plugin_manifest::Capability;
use plugin_protocol::Handle;

/// A call that no instance makes if only granted capabilities are linked for it: the call gets no answer, and the
/// instance ends.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error(
        "the plugin `{plugin}` called `{call}`, which takes the capability `{capability}`, and the policy does not grant it"
    )]
    Grant {
        plugin: String,
        call: &'static str,
        capability: Capability,
    },
    #[error("the instance used {0:?}, which it does not hold or which is of another kind")]
    Handle(Handle),
    #[error(
        "the instance acknowledged {used} bytes of a stream, which does not match what it received"
    )]
    Position { used: u64 },
}
