//! The wasm engine: what every engine promises, and what only this one does. Runs the supervisor of
//! the layout that `cargo xtask test` builds (`SUPERVISOR_DIST`) with the components that it builds
//! (`SUPERVISOR_TEST_GUESTS`).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails"
)]

mod suite;

#[path = "wasm/fixture.rs"]
#[allow(dead_code, reason = "words of tests to come")]
mod fixture;
#[path = "wasm/registry.rs"]
mod registry;

engine_suite!(fixture::WasmFixture::open);
