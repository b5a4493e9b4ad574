//! The command line: subcommands, and the flags of `run` with their environment variables and the keys
//! of the configuration file.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use api::LocalModeAuth;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Arg, ArgMatches, Args, FromArgMatches, Parser, Subcommand};
use model::Branding;
use serde::Deserialize;

use crate::listen_address::{MODES, local_mode_auth};

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

/// What can be set, in the configuration file and by flags. Everything is optional here;
/// [`crate::configuration`] completes it.
#[derive(Args, Deserialize, Debug, Default)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Settings {
    /// The folder for the state: database, locks, compiled plugins, wasm services [default:
    /// /var/lib/supervisor] [config: state_dir]
    #[arg(long, value_name = "DIR", env = "SUPERVISOR_STATE_DIR")]
    pub(crate) state_dir: Option<PathBuf>,

    /// An address on which the API listens, repeatable; port 0 chooses a free port, which is then in the file
    /// `address` of the state folder. `=local-endpoints` or `=open` after it sets what a device in local mode
    /// answers there without a key; on loopback only to processes of root and of the supervisor's user and group,
    /// with `+any-process` to all [default: 127.0.0.1:48484] [config: listen]
    #[arg(
        long,
        value_name = "ADDR:PORT[=AUTH]",
        env = "SUPERVISOR_LISTEN",
        value_delimiter = ','
    )]
    pub(crate) listen: Vec<String>,

    /// Where services run: `wasm`, `docker` (which includes wasm), or `auto`, which is docker if its
    /// socket answers and otherwise wasm [default: auto] [config: engine]
    #[arg(long, value_enum, env = "SUPERVISOR_ENGINE")]
    pub(crate) engine: Option<crate::configuration::EngineChoice>,

    /// The Docker engine's address [default: the variable DOCKER_HOST, else
    /// unix:///var/run/docker.sock] [config: docker_host]
    #[arg(long, value_name = "URI", env = "SUPERVISOR_DOCKER_HOST")]
    pub(crate) docker_host: Option<String>,

    /// A folder of plugins, repeatable (in the variable separated by colons) [default: `plugins` beside
    /// the program's folder] [config: plugin_dirs]
    #[arg(
        long = "plugin-dir",
        value_name = "DIR",
        env = "SUPERVISOR_PLUGIN_DIR",
        value_delimiter = ':'
    )]
    pub(crate) plugin_dirs: Vec<PathBuf>,

    /// The policy, which says what plugins may do [default: `policy.toml` beside the program's folder]
    /// [config: policy]
    #[arg(long, value_name = "FILE", env = "SUPERVISOR_POLICY")]
    pub(crate) policy: Option<PathBuf>,

    /// For developers: a plugin gets what the policy grants to the name that it claims, even if the policy does not pin
    /// its file [default: false] [config: allow_unpinned]
    #[arg(
        long,
        value_name = "BOOL",
        env = "SUPERVISOR_ALLOW_UNPINNED",
        num_args = 0..=1,
        default_missing_value = "true"
    )]
    pub(crate) allow_unpinned: Option<bool>,

    /// Allow a cloud on another machine without TLS (`http://`): anybody on the network path
    /// can read this device's key and decide what it runs [default: false] [config: allow_plain]
    #[arg(
        long,
        value_name = "BOOL",
        env = "SUPERVISOR_ALLOW_PLAIN",
        num_args = 0..=1,
        default_missing_value = "true"
    )]
    pub(crate) allow_plain: Option<bool>,

    /// The configuration file; no other is read [default: none]
    #[arg(long, value_name = "FILE", env = "SUPERVISOR_CONFIG")]
    #[serde(skip)]
    pub(crate) config: Option<PathBuf>,

    /// The root of the host's file system, below which the supervisor reads and changes files of the host
    /// [default: /] [config: host_root]
    #[arg(long, value_name = "DIR", env = "SUPERVISOR_HOST_ROOT")]
    pub(crate) host_root: Option<PathBuf>,

    /// The description of the board, with `slug` and `arch` [default: mnt/boot/device-type.json below
    /// the host root] [config: device_type]
    #[arg(long, value_name = "FILE", env = "SUPERVISOR_DEVICE_TYPE")]
    pub(crate) device_type: Option<PathBuf>,

    /// The device's config.json, with its identity and its cloud [default: mnt/boot/config.json below the host root]
    /// [config: config_json]
    #[arg(long, value_name = "FILE", env = "SUPERVISOR_CONFIG_JSON")]
    pub(crate) config_json: Option<PathBuf>,

    /// How to change the host, for example to reboot or rename it: through systemd on D-Bus (`dbus`),
    /// or not at all, only by a line in the log (`rehearse`) [default: dbus] [config: host_actions]
    #[arg(long, value_enum, env = "SUPERVISOR_HOST_ACTIONS")]
    pub(crate) host_actions: Option<crate::configuration::HostActions>,

    /// The system bus [default: unix:path= and run/dbus/system_bus_socket below the host root]
    /// [config: dbus_address]
    #[arg(long, value_name = "ADDRESS", env = "SUPERVISOR_DBUS_ADDRESS")]
    pub(crate) dbus_address: Option<String>,

    /// The program that prints the host's journal: `journalctl`, or one with the same options [default:
    /// journalctl, by the search path] [config: journal_program]
    #[arg(long, value_name = "PROGRAM", env = "SUPERVISOR_JOURNAL_PROGRAM")]
    pub(crate) journal_program: Option<PathBuf>,

    /// The unit of the host that SUPERVISOR_VPN_CONTROL in the target starts and stops, on a device with a cloud
    /// [default: openvpn.service] [config: vpn_unit]
    #[arg(long, value_name = "UNIT", env = "SUPERVISOR_VPN_UNIT")]
    pub(crate) vpn_unit: Option<String>,

    /// The uuid of the app of which this supervisor is a release: shown in the plan, never run or
    /// removed [default: by its name, as in aarch64-supervisor] [config: own_app]
    #[arg(long, value_name = "UUID", env = "SUPERVISOR_OWN_APP")]
    pub(crate) own_app: Option<String>,

    /// Everything in the engine belongs to this device, including objects without its uuid
    /// [default: false] [config: exclusive]
    #[arg(
        long,
        value_name = "BOOL",
        env = "SUPERVISOR_EXCLUSIVE",
        num_args = 0..=1,
        default_missing_value = "true"
    )]
    pub(crate) exclusive: Option<bool>,

    /// What needs no key in local mode at addresses in `--listen` without a setting: `local-endpoints`,
    /// everything (`open`) or nothing but /ping and /v1/healthy (`strict`) [default: strict] [config:
    /// local_mode_auth]
    #[arg(
        long,
        value_parser = PossibleValuesParser::new(MODES).try_map(|mode| local_mode_auth(&mode)),
        value_name = "MODE",
        env = "SUPERVISOR_LOCAL_MODE_AUTH"
    )]
    pub(crate) local_mode_auth: Option<LocalModeAuth>,

    /// A name by which clients may call the device, in addition to its address, its own name and its uuid,
    /// repeatable; requests for other names are refused, because pages of other sites send them [default: none]
    /// [config: host_names]
    #[arg(
        long = "host-name",
        value_name = "NAME",
        env = "SUPERVISOR_HOST_NAMES",
        value_delimiter = ','
    )]
    pub(crate) host_names: Vec<String>,

    /// What to log: a level, or a filter such as `info,access=debug` [default: info] [config: log]
    #[arg(long, value_name = "FILTER", env = "SUPERVISOR_LOG")]
    pub(crate) log: Option<String>,

    // Settings of the configuration file only, in PRECEDENCE.
    /// TCP ports that stay open when a target turns on the firewall.
    #[arg(skip)]
    pub(crate) firewall_ports: Option<BTreeSet<u16>>,
    /// The first of the user numbers of wasm services.
    #[arg(skip)]
    pub(crate) first_service_user: Option<u32>,
    /// What the keys of services give access to.
    #[arg(skip)]
    pub(crate) service_keys: api::ServiceKeys,
    #[arg(skip)]
    pub(crate) branding: Branding,
    /// By the plugin's name.
    #[arg(skip)]
    pub(crate) plugins: toml::Table,
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
