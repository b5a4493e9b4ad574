//! Accounts and their credentials (docs/spec/cloud.md#credentials): what the API and the dashboard both do with them.

pub mod cloud_administrators;
pub mod keys;
pub mod organization_quotas;
pub mod sessions;
pub mod users;
pub mod verification;
