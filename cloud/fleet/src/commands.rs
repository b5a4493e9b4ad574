//! What each command does: finds what is meant, asks the cloud, says what came of it.

pub(crate) mod device;
pub(crate) mod device_actions;
pub(crate) mod devices;
pub(crate) mod fleets;
pub(crate) mod joining;
pub(crate) mod keys;
pub(crate) mod logs;
pub(crate) mod people;
pub(crate) mod pins;
pub(crate) mod releases;
pub(crate) mod tags;
pub(crate) mod variables;
