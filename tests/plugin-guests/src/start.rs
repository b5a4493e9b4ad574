//! Code that runs when an instance is created, before its first call.

use crate::bindings::platform::supervisor::{config, led};
use crate::misbehave::spin;

/// The tools that create a component make it call a core function with this name at its start.
///
/// Takes 13 MiB of memory if the configuration contains `takes-memory-at-start`, then prints its caller if it contains
/// `names-its-caller-at-start`. If it contains `loops-at-start`, loops while there is an LED called `loop`, so a test can
/// choose the time.
#[allow(unsafe_code, reason = "the name is nobody else's")]
#[unsafe(no_mangle)]
extern "C" fn _initialize() {
    if config::json().contains("takes-memory-at-start") {
        // A memory never becomes smaller.
        drop(std::hint::black_box(vec![1_u8; 13 << 20]));
    }
    if config::json().contains("names-its-caller-at-start") {
        eprintln!("started for {}", crate::caller());
    }
    if config::json().contains("loops-at-start")
        && led::names().is_ok_and(|names| names.iter().any(|name| name == "loop"))
    {
        spin();
    }
}
