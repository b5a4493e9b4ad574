//! The database, on SQLite and on PostgreSQL alike.

mod schema;
