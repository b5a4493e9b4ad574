//! The host's part of the observed state.

use std::collections::BTreeSet;

use model::{AppUuid, BootId, HostPart};

/// The known state of the host.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CurrentHost {
    /// The parts that differ from the target.
    pub differs: BTreeSet<HostPart>,
    /// The current boot of the host. If it is unknown, no service waits for the next.
    pub boot: Option<BootId>,
    /// Whether something was configured in this boot that takes effect with the next.
    pub reboot_due: bool,
    /// The number of reboots for the target since it was last reached or replaced.
    pub reboots: u32,
    /// Apps whose services somebody has requested to start: these do not wait for a reboot.
    pub acting: BTreeSet<AppUuid>,
}
