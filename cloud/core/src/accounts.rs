//! Accounts and their credentials (docs/spec/cloud.md#credentials): operations that the API and the dashboard share.

pub mod cloud_administrators;
pub mod keys;
pub mod organization_quotas;
pub mod sessions;
pub mod users;
pub mod verification;
