//! What can be set, in the configuration file and by the flags of `run` with their environment variables.

use std::collections::BTreeSet;
use std::path::PathBuf;

use api::LocalModeAuth;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Args, ValueEnum};
use model::Branding;
use serde::Deserialize;

use crate::listen_address::{MODES, local_mode_auth};

/// Where services run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum EngineChoice {
    #[default]
    Auto,
    Docker,
    Wasm,
}

/// What is done about the host itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum HostActions {
    #[default]
    Dbus,
    Rehearse,
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
    pub(crate) engine: Option<EngineChoice>,

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
    pub(crate) host_actions: Option<HostActions>,

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

    // Settings of the configuration file only, which the help of `run` lists.
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
