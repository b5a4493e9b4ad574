//! Capabilities: none held, none to be had.

use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set,
    clear_ambient_capability_set, no_new_privs, remove_capability_from_bounding_set,
    set_capabilities,
};

/// Empties the set of what programs that this process starts could ever get, as far as it may: without
/// `CAP_SETPCAP` nothing can be taken out of it.
pub(crate) fn empty_bounding_set() -> Result<(), Errno> {
    for capability in known() {
        remove_capability_from_bounding_set(capability)?;
    }
    Ok(())
}

/// Gives up all capabilities and looks whether they are gone. `bounding` is what came of emptying the bounding set.
pub(crate) fn give_up(bounding: Result<(), Errno>) -> Result<(), String> {
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    // `INVAL` is a kernel before 4.3, which has no ambient set.
    match clear_ambient_capability_set() {
        Ok(()) | Err(Errno::INVAL) => {}
        Err(error) => return Err(format!("failed to clear the ambient set: {error}")),
    }
    set_capabilities(None, none).map_err(|error| format!("failed to give them up: {error}"))?;
    let left = capabilities(None).map_err(|error| format!("failed to check them: {error}"))?;
    if left != none {
        return Err(format!("some are left: {left:?}"));
    }
    // Without new privileges a bounding set bounds nothing: no program gets anything from its file.
    match bounding {
        Err(error) if !no_new_privs().unwrap_or(false) => {
            Err(format!("failed to empty the bounding set: {error}"))
        }
        _ => Ok(()),
    }
}

/// Does something without any capability, and has them again afterwards. A file that is opened so remembers that whoever
/// opened it had none.
///
/// # Errors
/// They cannot be looked at or put down.
pub fn without_capabilities<T>(work: impl FnOnce() -> T) -> Result<T, Errno> {
    let held = capabilities(None)?;
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        ..held
    };
    set_capabilities(None, none)?;
    let done = work();
    // What is permitted is not less than it was.
    set_capabilities(None, held)?;
    Ok(done)
}

/// The capabilities that the kernel has, which may be more than this program knows by name.
fn known() -> impl Iterator<Item = CapabilitySet> {
    (0..u64::BITS)
        .map(|bit| CapabilitySet::from_bits_retain(1 << bit))
        .take_while(|capability| capability_is_in_bounding_set(*capability).is_ok())
}
