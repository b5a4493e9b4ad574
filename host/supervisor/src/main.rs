//! The device supervisor's program: reads the command line and executes the subcommand.

mod address;
mod api_key;
mod arguments;
mod boots;
mod cloud;
mod configuration;
mod device;
mod endpoints;
mod engines;
mod facts;
mod firewall;
mod host;
mod host_name;
mod host_settings;
mod listen_address;
mod listeners;
mod logging;
mod offline_plugins;
mod output;
mod parts;
mod plugin_api;
mod plugin_events;
mod plugin_fields;
mod plugin_http;
mod plugin_verdict;
mod plugin_writes;
mod plugins_install;
mod plugins_list;
mod plugins_log;
mod plugins_rollback;
mod plugins_slot;
mod plugins_trust;
mod power;
mod registry_account;
mod remove_services;
mod request_places;
mod run;
mod run_folder;
mod running_supervisor;
mod settings;
mod systemd;
mod target_policy;
mod variables;
mod walls;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use crate::arguments::{ApiKeyCommand, Arguments, Command, Flags, PluginsCommand};

fn main() -> ExitCode {
    heap::share_heaps();
    let done = match Arguments::parse().command {
        Command::Run(flags) => run(*flags),
        Command::ApiKey(ApiKeyCommand::Show(flags)) => api_key::show(*flags),
        Command::Plugins(PluginsCommand::List { flags, json }) => plugins_list::list(*flags, json),
        Command::Plugins(PluginsCommand::Check { flags, json }) => {
            plugins_list::check(*flags, json)
        }
        Command::Plugins(PluginsCommand::Log(arguments)) => plugins_log::log(arguments),
        Command::Plugins(PluginsCommand::EmbedSignature { file, .. }) => {
            plugins::embed_signature(&file).map_err(Into::into)
        }
        Command::Plugins(PluginsCommand::Trust { plugin, flags }) => {
            plugins_trust::trust(&plugin, *flags)
        }
        Command::Plugins(PluginsCommand::Grant { plugin, flags }) => {
            plugins_trust::grant(&plugin, *flags)
        }
        Command::Plugins(PluginsCommand::Install {
            plugin,
            wait,
            json,
            flags,
        }) => plugins_install::install(&plugin, wait, *flags, json),
        Command::Plugins(PluginsCommand::Rollback {
            name,
            wait,
            json,
            flags,
        }) => plugins_rollback::rollback(&name, wait, *flags, json),
        Command::RemoveServices { flags, removal } => remove_services::remove(*flags, &removal),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_chain(&error);
            ExitCode::FAILURE
        }
    }
}

fn run(flags: Flags) -> Result<()> {
    let configuration = configuration::resolve(flags)?;
    logging::start(&configuration.log)?;
    run::run(configuration)
}

fn print_chain(error: &anyhow::Error) {
    output::note(format_args!("error: {error}"));
    for cause in error.chain().skip(1) {
        output::note(format_args!("  caused by: {cause}"));
    }
}
