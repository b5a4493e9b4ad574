//! The fleet cloud: one program that serves the data API, the devices that poll and report to it, and the
//! proxy that reaches them.
//!
//! ```text
//! router ── data_api    /v7/…: odata, then `data` (one statement), rows as they come
//!        ├─ accounts    signing in, keys, whoami
//!        ├─ registry    tokens for the registry of images
//!        ├─ tunnels     tunnels of devices, the proxy to them, and push
//!        └─ …           a module for each family of addresses
//! auth                  who asks (session token or key, remembered for minutes), and how often
//! connections           sockets, and the times and numbers that they are held to (bounds)
//! ```

mod accounts;
mod answer;
mod arguments;
mod auth;
mod body;
mod body_token;
mod bounds;
mod bus;
mod charge;
mod clients;
mod clock;
mod cloud;
mod concurrency;
mod configuration;
mod connections;
mod cors;
mod credential;
mod dashboard;
mod data_api;
mod database_probe;
mod device;
mod first_start;
mod forwarded;
mod health;
mod keyring_file;
mod lease;
mod limits;
mod long_answers;
mod memory;
mod offline;
mod open_files;
mod password;
mod pools;
mod random;
mod registry;
mod release_asset;
mod request_log;
mod reset_password;
mod rights;
mod router;
mod run;
mod secrets;
mod session;
mod shares;
mod state;
mod tunnels;
mod unreadable;

use anyhow::Result;
use arguments::{Arguments, Command};
use clap::Parser as _;

fn main() -> Result<()> {
    memory::give_back_large_blocks();
    match Arguments::parse().command {
        Command::Serve(given) => run::serve(*given),
        Command::RegistryCertificate(given) => run::print_registry_certificate(*given),
        Command::RotateSigningKeys(given) => run::rotate_signing_keys(*given),
        Command::SecretsKey(what) => secrets::print_new_key(&what),
        Command::RotateSecrets(given) => secrets::rotate(*given),
        Command::ResetPassword(given) => reset_password::run(*given),
    }
}
