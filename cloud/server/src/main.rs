//! The fleet cloud: one program that serves the data API, the devices that poll and report to it, and the
//! proxy that reaches them.
//!
//! ```text
//! router ── data_api    /v7/…: odata, then `data` (one statement), rows as they arrive
//!        ├─ accounts    signing in, keys, whoami
//!        ├─ registry    tokens for the registry of images
//!        ├─ device      the endpoints of devices
//!        └─ …           a module for each family of addresses
//! connections           sockets, and their limits of time and number (bounds)
//! ```
//!
//! Authentication, access to devices and communication between replicas are in `cloud_core`.

mod accounts;
mod arguments;
mod body_token;
mod bounds;
mod clients;
mod configuration_file;
mod connections;
mod cors;
mod data_api;
mod database_probe;
mod device;
mod etag;
mod first_start;
mod forwarded;
mod health;
mod keyring_file;
mod long_answers;
mod memory;
mod offline;
mod open_files;
mod registry;
mod release_asset;
mod request_log;
mod reset_password;
mod router;
mod run;
mod secrets;
mod shares;
mod state;
mod supervisor_proxy;

use anyhow::Result;
use arguments::{Arguments, Command};
use clap::Parser as _;

fn main() -> Result<()> {
    memory::give_back_large_blocks();
    match Arguments::parse().command {
        Command::Serve(arguments) => run::serve(*arguments),
        Command::RegistryCertificate(arguments) => run::print_registry_certificate(*arguments),
        Command::RotateSigningKeys(arguments) => run::rotate_signing_keys(*arguments),
        Command::SecretsKey(command) => secrets::print_new_key(&command),
        Command::RotateSecrets(arguments) => secrets::rotate(*arguments),
        Command::ResetPassword(arguments) => reset_password::run(*arguments),
    }
}
