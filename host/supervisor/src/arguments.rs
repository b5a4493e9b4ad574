//! The command line: subcommands, their arguments and their help.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, ArgMatches, Args, FromArgMatches, Parser, Subcommand};

use crate::settings::Settings;

/// Run the services of a device, and answer its HTTP API
#[derive(Parser)]
#[command(name = "supervisor", version, propagate_version = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run the supervisor until SIGTERM, SIGINT or SIGHUP; its services continue to run
    #[command(after_help = PRECEDENCE)]
    Run(Box<Flags>),
    /// Show the key of this device's API
    #[command(subcommand)]
    ApiKey(ApiKeyCommand),
    /// List and check the plugins of this device, roll one back, or trust or sign a plugin's file
    #[command(subcommand)]
    Plugins(PluginsCommand),
    /// Remove the services of a stopped device from its engines; for `cargo xtask run`
    #[command(hide = true)]
    RemoveServices {
        #[command(flatten)]
        flags: Box<Flags>,
        #[command(flatten)]
        removal: Removal,
    },
}

#[derive(Subcommand)]
pub(crate) enum ApiKeyCommand {
    /// Print the key, also while the supervisor runs
    #[command(mut_args(|flag| shown_where(flag, &["state_dir", "config"])))]
    Show(Box<Flags>),
}

#[derive(Subcommand)]
pub(crate) enum PluginsCommand {
    /// List the plugins of the running supervisor or, if none is running, those that it would load
    #[command(mut_args(|flag| shown_where(flag, &[
        "state_dir", "config", "plugin_dirs", "policy", "allow_unpinned", "host_root", "device_type",
        "json",
    ])))]
    List {
        #[command(flatten)]
        flags: Box<Flags>,
        /// Print them as JSON, as GET /v3/plugins does
        #[arg(long)]
        json: bool,
    },
    /// List them as `plugins list` does, and fail if one is refused or the policy is invalid
    #[command(mut_args(|flag| shown_where(flag, &[
        "state_dir", "config", "plugin_dirs", "policy", "allow_unpinned", "host_root", "device_type",
        "json",
    ])))]
    Check {
        #[command(flatten)]
        flags: Box<Flags>,
        /// Print them as JSON, as `plugins list --json` does
        #[arg(long)]
        json: bool,
    },
    /// Print the last lines that a plugin has written to the log of the running supervisor
    #[command(mut_args(|flag| shown_where(flag, &["name", "follow", "json", "state_dir", "config"])))]
    Log(LogArguments),
    /// Roll a plugin back to its previous version, and wait until the running supervisor has loaded or refused it
    #[command(mut_args(|flag| shown_where(flag, &[
        "name", "wait", "json", "state_dir", "config", "plugin_dirs", "policy", "allow_unpinned", "host_root",
    ])))]
    Rollback {
        /// The plugin's name
        name: String,
        #[command(flatten)]
        wait: Wait,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        flags: Box<Flags>,
    },
    /// Move the signature of a plugin from `FILE.minisig` into the file itself
    #[command(mut_args(|flag| shown_where(flag, &["file"])))]
    EmbedSignature {
        /// The plugin's file
        file: PathBuf,
        #[command(flatten)]
        flags: Box<Flags>,
    },
    /// Add the lines to the policy that grant a plugin's file what it asks for, and print them; a running supervisor
    /// applies them immediately
    #[command(mut_args(|flag| shown_where(flag, &["file", "key", "config", "policy", "allow_unpinned"])))]
    Grant {
        #[command(flatten)]
        plugin: PluginFile,
        #[command(flatten)]
        flags: Box<Flags>,
    },
    /// Install a plugin: check its file, grant what it asks for, as `plugins grant` does, put it into the plugin folder,
    /// and wait until the running supervisor has loaded or refused it
    #[command(mut_args(|flag| shown_where(flag, &[
        "file", "key", "wait", "json", "state_dir", "config", "plugin_dirs", "policy", "allow_unpinned", "host_root",
        "device_type",
    ])))]
    Install {
        #[command(flatten)]
        plugin: PluginFile,
        #[command(flatten)]
        wait: Wait,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        flags: Box<Flags>,
    },
    /// Print what a plugin's file asks for, and the lines of the policy that grant it
    #[command(mut_args(|flag| shown_where(flag, &["file", "key", "config", "policy"])))]
    Trust {
        #[command(flatten)]
        plugin: PluginFile,
        #[command(flatten)]
        flags: Box<Flags>,
    },
}

/// A plugin that an owner decides about.
#[derive(Args)]
pub(crate) struct PluginFile {
    /// The plugin's file
    pub(crate) file: PathBuf,
    /// Trust the maker rather than this file: the file with the maker's public key (of `supervisor-plugin keygen` or
    /// minisign). The lines then apply to each version that this key signs, and the policy names the key after the file
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
}

/// How long a command waits for the running supervisor.
#[derive(Args, Clone, Copy)]
pub(crate) struct Wait {
    /// Seconds to wait at most until the running supervisor has loaded or refused the file; with 0 the command does not
    /// wait
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 120,
        value_parser = clap::value_parser!(u64).range(..=86_400)
    )]
    wait: u64,
}

impl Wait {
    /// Returns the longest wait.
    pub(crate) fn limit(self) -> Duration {
        Duration::from_secs(self.wait)
    }
}

/// What `plugins log` prints.
#[derive(Args)]
pub(crate) struct LogArguments {
    /// The plugin's name
    pub(crate) name: String,
    /// Follow new lines until Ctrl-C
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Print each line as JSON, as GET /v3/plugins/NAME/log does
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) flags: Box<Flags>,
}

/// Every subcommand accepts all flags, since all read one configuration; its help shows only the relevant ones.
fn shown_where(flag: Arg, names: &[&str]) -> Arg {
    let hidden = !names.contains(&flag.get_id().as_str());
    flag.hide(hidden)
}

/// What `remove-services` removes.
#[derive(Args, Debug)]
pub(crate) struct Removal {
    /// Also remove volumes and pulled images
    #[arg(long)]
    pub(crate) all: bool,
    /// Seconds that a service may take to stop
    #[arg(long, default_value_t = 10)]
    pub(crate) grace: u64,
}

const PRECEDENCE: &str = "\
A flag takes precedence over its environment variable, the variable over the key of the configuration file \
(in TOML, named [config: KEY] above), and the key over the default. Default folders are beside the program, as \
`cargo xtask build` lays them out.

Settings without a flag, in the configuration file only:
  firewall_ports       TCP ports that stay open when a target turns on the firewall [default: 22222 and 2375]
  first_service_user   the first of the 65,536 user numbers of wasm services [default: 1900000000]
  service_keys         what the key of a service gives access to: `device`, or only its `own-app`
                       [default: device]
  [branding]           names that a vendor may change: env_prefix, label_namespace, folder, network,
                       api_level, aliases
  [plugins.NAME]       settings for the plugin NAME";

/// The flags of a subcommand as they were given, with their environment variables.
#[derive(Debug, Clone)]
pub(crate) struct Flags(pub(crate) ArgMatches);

impl Args for Flags {
    fn augment_args(command: clap::Command) -> clap::Command {
        Settings::augment_args(command)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Settings::augment_args_for_update(command)
    }
}

impl FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Flags(matches.clone()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::{PRECEDENCE, Settings};

    #[test]
    fn each_flag_says_its_variable_its_default_and_its_key() {
        let command = super::Arguments::command();
        command.clone().debug_assert();
        let run = command.find_subcommand("run").unwrap();
        for argument in run.get_arguments().filter(|a| !a.is_hide_set()) {
            let name = argument.get_id().as_str();
            if matches!(name, "help" | "version") {
                continue;
            }
            let help = argument.get_help().unwrap().to_string();
            assert!(argument.get_env().is_some(), "{name}");
            assert!(help.contains("[default: "), "{name}: {help}");
            assert!(
                name == "config" || help.contains(&format!("[config: {name}]")),
                "{name}: {help}"
            );
        }
    }

    #[test]
    fn the_help_lists_each_key_of_the_configuration_file_that_has_no_flag() {
        let refusal = toml::from_str::<Settings>("nothing = 0").unwrap_err();
        let (_, keys) = refusal.message().split_once("expected one of ").unwrap();
        let keys: Vec<&str> = keys.split(", ").map(|key| key.trim_matches('`')).collect();
        let command = super::Arguments::command();
        let run = command.find_subcommand("run").unwrap();
        let flags: Vec<&str> = run
            .get_arguments()
            .map(|flag| flag.get_id().as_str())
            .collect();
        let without_flag = keys.iter().filter(|key| !flags.contains(key));
        let mut count = 0;
        for key in without_flag {
            let begins_a_line = PRECEDENCE.lines().any(|line| {
                let first = line.split_whitespace().next().unwrap_or_default();
                first.trim_start_matches('[').split(['.', ']']).next() == Some(key)
            });
            assert!(begins_a_line, "{key}");
            count += 1;
        }
        assert_eq!(count, 5, "{keys:?}");
    }
}
