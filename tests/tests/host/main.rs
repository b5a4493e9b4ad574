//! How the stock plugins report and change the host, on a running supervisor, with stand-ins for the host's own
//! programs.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod boot_config;
mod firewall;
mod host_config;
mod journal_logs;
mod proxied;
mod test_proxy;
mod variables;
mod vpn;
