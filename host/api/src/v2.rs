//! The second version of the API, which supports several services.

pub(crate) mod actions;
pub(crate) mod applications;
pub(crate) mod container_id;
pub(crate) mod local;
pub(crate) mod local_logs;
pub(crate) mod local_target;
pub(crate) mod state_status;
pub(crate) mod version;
pub(crate) mod volumes;
