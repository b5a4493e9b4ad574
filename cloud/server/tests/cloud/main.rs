//! The cloud from outside: the real program, over HTTP, on SQLite and on PostgreSQL.
#![expect(
    clippy::expect_used,
    reason = "a test without what it expects is to fail"
)]

mod accounts;
mod at_once;
mod clients;
mod cloud_administrators;
mod conformance;
mod connections;
mod costs;
mod credentials;
mod dashboard;
mod data_api;
mod device_heartbeat;
mod device_logs;
mod device_register;
mod device_report;
mod device_state;
mod device_state_changes;
mod docker_registry;
mod documented;
mod examples;
mod fake_device;
mod full_disk;
mod fuzz;
mod harness;
mod health;
mod hostile;
mod invitations;
mod killed;
mod memberships;
mod postgres_server;
mod proxies;
mod quotas;
mod reach;
mod registry;
mod registry_garbage;
mod release_asset_parts;
mod release_assets;
mod replicas;
mod restored;
mod scene;
mod secrets;
mod severable;
mod shares;
mod shop;
mod shrinking;
mod statements_by_hand;
mod system_organization;
mod transcript;
mod variants;
mod version_operations;
mod versions;
