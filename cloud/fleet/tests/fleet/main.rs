//! The command line as its users run it: the real `fleet` against a real `fleet-cloud`.
#![expect(
    clippy::expect_used,
    reason = "a test without what it expects is to fail"
)]

mod account;
mod assets;
mod beside;
mod deploy;
mod fleet_and_devices;
mod harness;
mod joining;
mod output;
mod people;
mod readme;
mod registry;
mod tags_variables_keys;
