//! The tool as an author uses it: the commands of docs/plugin-tool.md, typed as printed there.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod author;
mod build_environment;
mod capabilities;
mod check;
mod compiler;
mod completions;
mod device_fakes;
mod documented_code;
mod documented_way;
mod ended_calls;
mod events;
mod files;
mod first_plugin;
mod harness;
mod hostile_requests;
mod install;
mod languages;
mod mistakes;
mod providers;
mod registry;
mod report_fields;
mod run;
mod run_steps;
mod run_usage;
mod signatures;
mod test;
mod typed_actions;
mod wasi_in_go;
