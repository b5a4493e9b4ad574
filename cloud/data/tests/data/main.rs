//! The database, on SQLite and on PostgreSQL alike.
#![expect(
    clippy::expect_used,
    reason = "a test without what it expects is to fail"
)]

mod fixture;
mod full_disk;
mod fuzz;
mod lost_commit;
mod query;
mod schema;
mod silent_server;
mod way;
mod write;
