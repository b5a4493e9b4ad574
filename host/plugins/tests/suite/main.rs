//! The plugin runtime with real components: `SUPERVISOR_TEST_GUESTS` names the folder with the built components, and
//! `SUPERVISOR_DIST` the layout with the compiler.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod actions;
mod answers;
mod callers;
mod events;
mod fixture;
mod gates;
mod grants;
mod http;
mod identify;
mod interface_versions;
mod kept_versions;
mod limits;
mod loading;
mod log;
mod owners;
mod pending_writes;
mod pins;
mod rauc;
mod reload;
mod routes_and_actions;
mod signatures;
mod store;
mod streams;
mod wasi_http;
