//! The cloud from outside: the real program, over HTTP, on SQLite and on PostgreSQL.
#![expect(
    clippy::expect_used,
    reason = "a test without what it expects is to fail"
)]

mod accounts;
mod at_once;
mod data_api;
mod docker_registry;
mod documented;
mod examples;
mod fake_device;
mod harness;
mod reach;
mod registry;
mod scene;
mod transcript;
mod versions;
