//! Capabilities: none held, none obtainable.

use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set,
    clear_ambient_capability_set, no_new_privs, remove_capability_from_bounding_set,
    set_capabilities,
};

/// Empties the set of capabilities that programs started by this process could get, as far as possible: without
/// `CAP_SETPCAP` nothing can be removed from it.
pub(crate) fn empty_bounding_set() -> Result<(), Errno> {
    for capability in known() {
        remove_capability_from_bounding_set(capability)?;
    }
    Ok(())
}

/// Gives up all capabilities, and checks that they are gone. `bounding` is the outcome of emptying the bounding set.
pub(crate) fn give_up(bounding: Result<(), Errno>) -> Result<(), String> {
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    // `INVAL` means a kernel before 4.3, which has no ambient set.
    match clear_ambient_capability_set() {
        Ok(()) | Err(Errno::INVAL) => {}
        Err(error) => return Err(format!("failed to clear the ambient set: {error}")),
    }
    set_capabilities(None, none).map_err(|error| format!("failed to give them up: {error}"))?;
    let left = capabilities(None).map_err(|error| format!("failed to check them: {error}"))?;
    if left != none {
        return Err(format!("some are left: {left:?}"));
    }
    // With "no new privileges" the bounding set does not matter: no program gets anything from its file.
    match bounding {
        Err(error) if !no_new_privs().unwrap_or(false) => {
            Err(format!("failed to empty the bounding set: {error}"))
        }
        _ => Ok(()),
    }
}

/// Runs `work` without any capability, and restores them afterwards. A file opened by `work` remembers that its opener
/// had none.
///
/// # Errors
/// If they cannot be read or dropped.
pub fn without_capabilities<T>(work: impl FnOnce() -> T) -> Result<T, Errno> {
    let held = capabilities(None)?;
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        ..held
    };
    set_capabilities(None, none)?;
    let done = work();
    // The permitted set has not been reduced.
    set_capabilities(None, held)?;
    Ok(done)
}

/// Returns the capabilities of the kernel, which may have more than this program knows by name.
fn known() -> impl Iterator<Item = CapabilitySet> {
    (0..u64::BITS)
        .map(|bit| CapabilitySet::from_bits_retain(1 << bit))
        .take_while(|capability| capability_is_in_bounding_set(*capability).is_ok())
}
