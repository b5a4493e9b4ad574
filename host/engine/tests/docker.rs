//! The docker engine: what every engine promises, and what only this one does. Runs against the
//! engine and the registry that `cargo xtask test` starts (`SUPERVISOR_TEST_DOCKER`,
//! `SUPERVISOR_TEST_REGISTRY`).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails"
)]

mod suite;

#[path = "docker/fixture.rs"]
mod fixture;
#[path = "docker/promises.rs"]
mod promises;

engine_suite!(fixture::DockerFixture::open);
