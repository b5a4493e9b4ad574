//! The implementation of each command: it looks up its arguments, sends requests to the cloud, and
//! prints the result.

pub(crate) mod account;
pub(crate) mod device;
pub(crate) mod device_actions;
pub(crate) mod devices;
pub(crate) mod fleets;
pub(crate) mod invitations;
pub(crate) mod joining;
pub(crate) mod keys;
pub(crate) mod local_mode;
pub(crate) mod logs;
pub(crate) mod members;
mod notes;
pub(crate) mod organizations;
pub(crate) mod people;
pub(crate) mod pins;
pub(crate) mod purge;
pub(crate) mod release_assets;
pub(crate) mod releases;
pub(crate) mod settings;
pub(crate) mod sign;
pub(crate) mod signing_key;
pub(crate) mod ssh_keys;
pub(crate) mod tags;
pub(crate) mod variables;
