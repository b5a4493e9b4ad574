//! Identity: signing in, keys, and what a credential represents (docs/spec/cloud.md#credentials).

pub(crate) mod cloud_administrators;
pub(crate) mod invitations;
pub(crate) mod keys;
pub(crate) mod organization_quotas;
pub(crate) mod sessions;
pub(crate) mod users;
pub(crate) mod whoami;
