//! Endpoints that the first two versions of the API do not have.

pub(crate) mod events;
pub(crate) mod locks;
pub(crate) mod openapi;
pub(crate) mod plan;
pub(crate) mod plugins;
