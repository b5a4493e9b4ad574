//! The first version of the API.

pub(crate) mod actions;
pub(crate) mod api_key;
pub(crate) mod apps;
pub(crate) mod blink;
pub(crate) mod device;
pub(crate) mod health;
pub(crate) mod power;
pub(crate) mod update;
