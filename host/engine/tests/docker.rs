//! The docker engine: the promises of every engine, and those of only this one. Runs against the
//! engine and the registry that `cargo xtask test` starts (`SUPERVISOR_TEST_DOCKER`,
//! `SUPERVISOR_TEST_REGISTRY`).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails"
)]

mod suite;

/// One test, with a fixture for a new device.
macro_rules! promise {
    ($name:ident, |$fixture:ident| $test:block) => {
        #[test]
        fn $name() {
            $crate::suite::run(
                $crate::fixture::DockerFixture::open(),
                |$fixture| async move { $test },
            );
        }
    };
}

#[path = "docker/connection.rs"]
mod connection;
#[path = "docker/containers.rs"]
mod containers;
#[path = "docker/fields.rs"]
mod fields;
#[path = "docker/fixture.rs"]
mod fixture;
#[path = "docker/networks.rs"]
mod networks;
#[path = "docker/pulls.rs"]
mod pulls;

engine_suite!(fixture::DockerFixture::open);
