//! The settings of compiled code, in wasmtime's form.

use compiled_code::{Memory, Profile, Settings};
use wasmtime::Config;

use crate::proposals;

/// Returns the settings for `profile`, complete except for the allocation strategy, which is on demand unless the
/// caller changes it (it does not affect compiled code).
#[must_use]
pub fn engine_config(profile: Profile) -> Config {
    config_from_settings(&Settings::for_profile(profile))
}

/// Uses every field: by these settings the cache distinguishes its compiled code from code compiled with others.
fn config_from_settings(settings: &Settings) -> Config {
    let Settings {
        wasmtime: _,
        proposals,
        epoch_interruption,
        native_unwind_info,
        memory,
        wasm_stack,
        stack,
    } = settings;
    let mut config = Config::new();
    config
        .epoch_interruption(*epoch_interruption)
        .native_unwind_info(*native_unwind_info)
        .max_wasm_stack(*wasm_stack)
        .async_stack_size(*stack);
    proposals::restrict(&mut config, proposals);
    if let Some(Memory {
        reservation,
        guard,
        growth,
        may_move,
    }) = memory
    {
        config
            .memory_reservation(*reservation)
            .memory_guard_size(*guard)
            .memory_reservation_for_growth(*growth)
            .memory_may_move(*may_move);
    }
    config
}
