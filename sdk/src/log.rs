//! The supervisor's log. Needs no capability.
//!
//! Each line carries the plugin's name. A message is cut at 4 KiB; after 100 lines in one call the rest
//! are counted and not written. What a plugin prints, a panic's message for example, reaches the log, too.

use std::fmt::Display;

use crate::bindings::capabilities::platform::supervisor::log as wit;

macro_rules! levels {
    ($($(#[doc = $doc:literal])+ $name:ident $level:ident;)*) => {
        $($(#[doc = $doc])+
        pub fn $name(message: impl Display) {
            wit::write(wit::Level::$level, &message.to_string());
        })*
    };
}

levels! {
    /// The finest detail, mostly switched off.
    trace Trace;
    /// Detail for those who look for a fault.
    debug Debug;
    /// What the owner of a device may want to know.
    info Info;
    /// Something is not as it should be; the plugin goes on.
    warn Warn;
    /// Something failed.
    error Error;
}
