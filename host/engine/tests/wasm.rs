//! The wasm engine: the promises of every engine, and those of only this one. Runs the supervisor
//! of the layout that `cargo xtask test` builds (`SUPERVISOR_DIST`) with the components that it
//! builds (`SUPERVISOR_TEST_GUESTS`).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails"
)]

mod suite;

#[path = "wasm/confinement.rs"]
mod confinement;
#[path = "wasm/fixture.rs"]
mod fixture;
#[path = "wasm/images.rs"]
mod images;
#[path = "wasm/limits.rs"]
mod limits;
#[path = "wasm/processes.rs"]
mod processes;
#[path = "wasm/records.rs"]
mod records;
#[path = "wasm/registry.rs"]
mod registry;
#[path = "wasm/sockets.rs"]
mod sockets;
#[path = "wasm/strays.rs"]
mod strays;
#[path = "wasm/unloadable_code.rs"]
mod unloadable_code;

engine_suite!(fixture::WasmFixture::open);
