//! What runs when an instance is made, before anybody calls it.

use crate::bindings::platform::supervisor::{config, led};
use crate::misbehave::spin;

/// The tools that make a component have it start with a core function of this name.
///
/// Prints who it is called for where the configuration says `names-its-caller-at-start`.
/// Loops while there is an LED called `loop`, where the configuration says `loops-at-start`: a test can so say when.
#[allow(unsafe_code, reason = "the name is nobody else's")]
#[unsafe(no_mangle)]
extern "C" fn _initialize() {
    if config::json().contains("names-its-caller-at-start") {
        eprintln!("started for {}", crate::caller());
    }
    if config::json().contains("loops-at-start")
        && led::names().is_ok_and(|names| names.iter().any(|name| name == "loop"))
    {
        spin();
    }
}
