//! The command line: subcommands, and the flags of `run` with their environment variables and the keys
//! of the configuration file.

use std::collections::BTreeSet;
use std::path::PathBuf;

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
    /// Run the supervisor until SIGTERM or SIGINT; its services continue to run
    #[command(after_help = PRECEDENCE)]
    Run(Box<Flags>),
    /// Show the key of this device's API
    #[command(subcommand)]
    ApiKey(ApiKeyCommand),
    /// Show the plugins of this device, put one back to the version before, and sign or trust a plugin's file
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
    ])))]
    Check(Box<Flags>),
    /// Print the last lines that a plugin has written to the log of the running supervisor
    #[command(mut_args(|flag| shown_where(flag, &["name", "follow", "json", "state_dir", "config"])))]
    Log(LogArguments),
    /// Put the version of a plugin back that served before the one that its file has now
    #[command(mut_args(|flag| shown_where(flag, &[
        "name", "state_dir", "config", "policy", "allow_unpinned", "host_root",
    ])))]
    Rollback {
        /// The plugin's name
        name: String,
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
    /// acts on them at once
    #[command(mut_args(|flag| shown_where(flag, &["file", "key", "config", "policy", "allow_unpinned"])))]
    Grant {
        #[command(flatten)]
        plugin: PluginFile,
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
    /// minisign). The lines are then for each version that this key signs, and the policy calls the key as the file
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
}

/// What `plugins log` prints.
#[derive(Args)]
pub(crate) struct LogArguments {
    /// The plugin's name
    pub(crate) name: String,
    /// Print new lines as they come, until the command is ended
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
    /// The seconds that a service may take to stop
    #[arg(long, default_value_t = 10)]
    pub(crate) grace: u64,
}

const PRECEDENCE: &str = "\
A flag takes precedence over its environment variable, the variable over the key of the configuration file \
(in TOML, named [config: KEY] above), and the key over the default. Default folders are beside the program, as \
`cargo xtask build` lays them out.

Keys that only the configuration file has:
  service_keys     what the key of a service gives access to: `device`, or only its `own-app`
  [branding]       names that a vendor may change: env_prefix, label_namespace, folder, network,
                   api_level, aliases
  [plugins.NAME]   settings for the plugin NAME";

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
    /// Where state is kept: database, locks, compiled plugins, wasm services [default:
    /// /var/lib/supervisor] [config: state_dir]
    #[arg(long, value_name = "DIR", env = "SUPERVISOR_STATE_DIR")]
    pub(crate) state_dir: Option<PathBuf>,

    /// Where the API listens, repeatable; port 0 chooses a free port, which is then in the file `address`
    /// of the state folder. `=local-endpoints` or `=open` after it sets what a device in local mode
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

    /// What plugins may do [default: `policy.toml` beside the program's folder] [config: policy]
    #[arg(long, value_name = "FILE", env = "SUPERVISOR_POLICY")]
    pub(crate) policy: Option<PathBuf>,

    /// For developers: a plugin's file gets what the policy grants to the name that it claims, without being
    /// pinned to it [default: false] [config: allow_unpinned]
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

    /// The root of the host's file system, below which the host is read and changed [default: /]
    /// [config: host_root]
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
    /// or not at all, only in the log (`rehearse`) [default: dbus] [config: host_actions]
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

    /// The host's unit that SUPERVISOR_VPN_CONTROL of the target switches, on a device with a cloud
    /// [default: openvpn.service] [config: vpn_unit]
    #[arg(long, value_name = "UNIT", env = "SUPERVISOR_VPN_UNIT")]
    pub(crate) vpn_unit: Option<String>,

    /// The uuid of the app of which this supervisor is a release: shown in the plan, never run or
    /// removed [default: by its name, as in aarch64-supervisor] [config: own_app]
    #[arg(long, value_name = "UUID", env = "SUPERVISOR_OWN_APP")]
    pub(crate) own_app: Option<String>,

    /// The engine belongs to this device alone, including objects without this device's uuid
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

    // What only the configuration file has.
    /// TCP ports that stay open where a target asks for a firewall.
    #[arg(skip)]
    pub(crate) firewall_ports: Option<BTreeSet<u16>>,
    /// The first of the users that wasm services have.
    #[arg(skip)]
    pub(crate) first_service_user: Option<u32>,
    /// What the keys of services open.
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
}
