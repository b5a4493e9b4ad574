//! The settings of the wasm engine that are part of compiled code.
//!
//! A compiled file loads only into an engine with the settings that it was compiled with, so they all
//! stand here, for the compiler and for those who run its output. What is a matter of the running
//! process alone (the pool's size, a store's limits) is set by its owner.

use std::fmt;
use std::str::FromStr;

use wasmtime::Config;

use crate::proposals;

/// What a component is compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Profile {
    /// A plugin: many small instances in one process, each for one call.
    Plugin,
    /// A wasm service: one instance in a process of its own.
    Service,
}

impl Profile {
    /// The name, as in `supervisor-compile --profile`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Profile::Plugin => "plugin",
            Profile::Service => "service",
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Text that names no [`Profile`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown profile `{0}`, expected `plugin` or `service`")]
pub struct UnknownProfile(String);

impl FromStr for Profile {
    type Err = UnknownProfile;
    fn from_str(text: &str) -> Result<Self, UnknownProfile> {
        match text {
            "plugin" => Ok(Profile::Plugin),
            "service" => Ok(Profile::Service),
            _ => Err(UnknownProfile(text.to_owned())),
        }
    }
}

/// The most bytes that a plugin's linear memory can ever have, whatever its limits say: the address
/// space that each slot of the pool reserves.
pub const PLUGIN_MEMORY: usize = 32 << 20;
/// Unmapped address space behind a plugin's memory, in bytes.
const PLUGIN_GUARD: u64 = 64 << 10;
/// Native stack of a plugin's call, in bytes: what the guest may use, and with the host's frames.
const PLUGIN_STACK: (usize, usize) = (256 << 10, 512 << 10);
/// The same of a service, in bytes: it is alone in its process, and its `main` thread would have had
/// megabytes elsewhere.
const SERVICE_STACK: (usize, usize) = (2 << 20, 3 << 20);

/// The settings for `profile`, complete but for the allocation strategy, which is on demand until the
/// caller says otherwise (it does not change compiled code).
#[must_use]
pub fn engine_config(profile: Profile) -> Config {
    let mut config = Config::new();
    config
        .wasm_component_model_async(true)
        // A loop in a guest ends at a deadline. Fuel would count more exactly and cost up to three
        // times as much in tight loops.
        .epoch_interruption(true)
        // For other programs' unwinders only: our own traces do without it, and registering it is
        // what makes loading slow where there are many components.
        .native_unwind_info(false);
    proposals::restrict(&mut config);
    match profile {
        Profile::Plugin => {
            config
                // A small reservation keeps the address space of the pool at about 32 MiB a slot
                // instead of 4 GiB, for explicit bounds checks in the code.
                .memory_reservation(PLUGIN_MEMORY as u64)
                .memory_guard_size(PLUGIN_GUARD)
                .memory_reservation_for_growth(0)
                // The pool gives each memory its whole reservation, so that it never moves.
                .memory_may_move(false)
                .max_wasm_stack(PLUGIN_STACK.0)
                .async_stack_size(PLUGIN_STACK.1);
        }
        Profile::Service => {
            // Memory as wasmtime has it by default for the target: on 64 bits a reservation of 4 GiB
            // (address space, not memory), which needs no bounds checks.
            config
                .max_wasm_stack(SERVICE_STACK.0)
                .async_stack_size(SERVICE_STACK.1);
        }
    }
    config
}
