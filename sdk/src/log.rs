//! The supervisor's log. Needs no capability.
//!
//! Each line contains the plugin's name. A message is cut off at 4 KiB; after 100 lines in one call,
//! further lines are counted but not written. What a plugin prints, for example the message of a panic, is
//! also written to the log.

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
    /// The finest detail, usually switched off.
    trace Trace;
    /// Details for debugging.
    debug Debug;
    /// What the owner of a device may want to know.
    info Info;
    /// Something is not as it should be, but the plugin continues.
    warn Warn;
    /// Something failed.
    error Error;
}
