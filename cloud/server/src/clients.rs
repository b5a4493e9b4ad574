//! Small endpoints for existing clients and devices outside the data API (docs/spec/cloud.md#other-endpoints).

pub(crate) mod access;
pub(crate) mod device_types;
pub(crate) mod download_config;
pub(crate) mod settings;
pub(crate) mod tunnel_server;
