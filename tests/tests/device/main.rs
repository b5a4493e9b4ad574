//! One device, from outside: the API, the services that it keeps running, and the life of the
//! program.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "also the helpers of a test fail with what they did not find"
)]

mod actions;
mod api_auth;
mod api_errors;
mod by_command_line;
mod cloud;
mod conformance;
mod disk_space;
mod docker;
mod events;
mod features;
mod folders;
mod health;
mod health_gate;
mod hostile_callers;
mod hostile_cloud;
mod hostile_plugins;
mod hostile_services;
mod kills;
mod layout;
mod lifecycle;
mod locks;
mod log_upload;
mod logs;
mod lost_store;
mod metrics;
mod os_update;
mod pending_update;
mod plan;
mod plugin_api;
mod plugin_buses;
mod plugin_commands;
mod plugin_fields;
mod plugin_folder;
mod plugin_hardware;
mod plugin_http;
mod plugin_install;
mod plugin_log;
mod plugin_worker;
mod provisioning;
mod replaced_keys;
mod reports;
mod signed_fleet;
mod signed_targets;
mod silent_names;
mod state;
mod strategies;
mod systemd;
mod tunnel;
mod unit;
mod update_gate;
mod walls;
mod with_its_cloud;
mod wrong_clock;
