//! `supervisor-plugin`: creates, checks, runs, signs and ships plugins, in every language that plugins are written in.
//!
//! It runs plugins in the device's own runtime ([`plugin_test_host`]). So what works here works on a device, and what a
//! device refuses is refused here with the same message. It needs no checkout of the repository: it contains the SDK
//! and the templates ([`templates`], [`sdk_sources`]), and also the compiler, unless the program is part of a layout,
//! in which the compiler is next to it ([`compiler`]).

mod action_bytes;
mod arguments;
mod commands;
mod compiler;
mod component;
mod component_imports;
mod device;
mod device_file;
mod files;
mod json_text;
mod languages;
mod log_filter;
mod output;
mod plugin_artifact;
mod policy;
mod producers;
mod project;
mod proxy_toml;
mod sdk_sources;
mod templates;
mod toolchain;
mod world;

use std::process::ExitCode;

use clap::Parser as _;

use crate::arguments::Arguments;
use crate::output::Output;

fn main() -> ExitCode {
    if let Some(code) = compiler::run_if_named() {
        return code;
    }
    let arguments = Arguments::parse();
    // The encryption of HTTP clients; this fails only if a provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let output = Output::new(arguments.json);
    match commands::run(arguments.command, &output) {
        Ok(code) => code,
        Err(error) => {
            output.error(&error);
            ExitCode::FAILURE
        }
    }
}
