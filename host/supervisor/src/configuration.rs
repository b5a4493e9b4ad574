//! Brings flags, environment, file and defaults together into one [`Configuration`].
//!
//! A key of the file that is not known is an error that names its line: a misspelt key would otherwise
//! be a setting that silently does nothing.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use cloud_link::PlainHttp;
use engine::wasm::UserRange;
use model::{AppUuid, Branding};
use os::UnitName;
use serde::Deserialize;

use crate::arguments::Flags;
use crate::listen_address::ListenAddress;

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

/// [`api::LocalModeAuth`] on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LocalModeAuth {
    LocalEndpoints,
    Open,
    Strict,
}

impl From<LocalModeAuth> for api::LocalModeAuth {
    fn from(auth: LocalModeAuth) -> Self {
        match auth {
            LocalModeAuth::LocalEndpoints => api::LocalModeAuth::LocalEndpoints,
            LocalModeAuth::Open => api::LocalModeAuth::Open,
            LocalModeAuth::Strict => api::LocalModeAuth::Strict,
        }
    }
}

/// Everything that is set, once and for the life of the process.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Configuration {
    pub(crate) state_dir: PathBuf,
    pub(crate) listen: Vec<ListenAddress>,
    pub(crate) engine: EngineChoice,
    pub(crate) docker_host: String,
    pub(crate) plugin_dirs: Vec<PathBuf>,
    pub(crate) policy: PathBuf,
    /// The plugins that the layout ships with, and which files they are.
    pub(crate) stock_plugins: PathBuf,
    pub(crate) allow_unpinned: bool,
    /// TCP ports that stay open where a target asks for a firewall.
    pub(crate) firewall_ports: BTreeSet<u16>,
    /// The cloud may be another machine without TLS.
    pub(crate) allow_plain: bool,
    pub(crate) host_root: PathBuf,
    pub(crate) device_type: PathBuf,
    pub(crate) config_json: PathBuf,
    pub(crate) host_actions: HostActions,
    pub(crate) dbus_address: String,
    pub(crate) journal_program: PathBuf,
    pub(crate) vpn_unit: UnitName,
    pub(crate) own_app: Option<AppUuid>,
    pub(crate) exclusive: bool,
    /// Who the processes of wasm services are.
    pub(crate) service_users: UserRange,
    /// Names by which clients may call the device beside its own, in lower case.
    pub(crate) host_names: Vec<String>,
    /// What the keys of services open.
    pub(crate) service_keys: api::ServiceKeys,
    /// What is set and does nothing, a sentence each.
    pub(crate) without_effect: Vec<String>,
    pub(crate) log: String,
    pub(crate) branding: Branding,
    /// By the plugin's name; handed on as it is.
    pub(crate) plugins: toml::Table,
    /// The program that runs components, beside this one.
    pub(crate) wasm_program: PathBuf,
    /// The program that compiles components, beside this one.
    pub(crate) compiler: PathBuf,
}

impl Configuration {
    /// Where the cloud may be spoken to without TLS.
    pub(crate) fn plain_http(&self) -> PlainHttp {
        if self.allow_plain {
            PlainHttp::Anywhere
        } else {
            PlainHttp::Loopback
        }
    }
}

/// The configuration file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct File {
    state_dir: Option<PathBuf>,
    listen: Vec<String>,
    engine: Option<EngineChoice>,
    docker_host: Option<String>,
    plugin_dirs: Vec<PathBuf>,
    policy: Option<PathBuf>,
    allow_unpinned: Option<bool>,
    allow_plain: Option<bool>,
    firewall_ports: Option<BTreeSet<u16>>,
    host_root: Option<PathBuf>,
    device_type: Option<PathBuf>,
    config_json: Option<PathBuf>,
    host_actions: Option<HostActions>,
    dbus_address: Option<String>,
    journal_program: Option<PathBuf>,
    vpn_unit: Option<String>,
    own_app: Option<String>,
    exclusive: Option<bool>,
    first_service_user: Option<u32>,
    local_mode_auth: Option<api::LocalModeAuth>,
    host_names: Vec<String>,
    service_keys: api::ServiceKeys,
    log: Option<String>,
    branding: Branding,
    plugins: toml::Table,
}

/// Relative paths, also those in the file, are taken from the working folder.
///
/// # Errors
/// Where the file cannot be read or has something in it that is not known, and where a value is not
/// what it should be.
pub(crate) fn resolve(flags: Flags) -> Result<Configuration> {
    let program = std::env::current_exe().context("failed to find this program's own file")?;
    let file = match &flags.config {
        Some(path) => read(path)?,
        None => File::default(),
    };
    merge(flags, file, &program)
}

fn read(path: &Path) -> Result<File> {
    let text = fs::read_to_string(path)
        .with_context(|| format!("failed to read the configuration file `{}`", path.display()))?;
    // The parser's message names line and column and shows the line.
    toml::from_str(&text).with_context(|| format!("failed to parse `{}`", path.display()))
}

fn merge(flags: Flags, file: File, program: &Path) -> Result<Configuration> {
    let bin = program.parent().unwrap_or(Path::new("/"));
    let layout = bin.parent().unwrap_or(bin);
    let host_root = path(flags.host_root, file.host_root, || "/".into())?;
    check_branding(&file.branding)?;
    let listen = first_filled(flags.listen, file.listen);
    let local_mode_auth = flags
        .local_mode_auth
        .map(Into::into)
        .or(file.local_mode_auth)
        .unwrap_or_default();
    let mut without_effect = Vec::new();
    if listen.is_empty() && local_mode_auth != api::LocalModeAuth::Strict {
        without_effect.push(format!(
            "`local_mode_auth` applies only to the addresses in `listen`: without `listen = [\"127.0.0.1:{DEFAULT_PORT}\"]` local mode requires keys"
        ));
    }
    Ok(Configuration {
        state_dir: path(flags.state_dir, file.state_dir, || {
            "/var/lib/supervisor".into()
        })?,
        listen: addresses(listen, local_mode_auth)?,
        engine: flags.engine.or(file.engine).unwrap_or_default(),
        docker_host: flags
            .docker_host
            .or(file.docker_host)
            .or_else(|| std::env::var("DOCKER_HOST").ok())
            .filter(|uri| !uri.is_empty())
            .unwrap_or_else(|| "unix:///var/run/docker.sock".into()),
        plugin_dirs: match first_filled(flags.plugin_dirs, file.plugin_dirs) {
            dirs if dirs.is_empty() => vec![layout.join("plugins")],
            dirs => dirs
                .iter()
                .map(std::path::absolute)
                .collect::<Result<_, _>>()?,
        },
        policy: path(flags.policy, file.policy, || layout.join("policy.toml"))?,
        // A part of the layout, as the compiler is: not for the owner to choose.
        stock_plugins: layout.join("stock-plugins.toml"),
        allow_unpinned: flags
            .allow_unpinned
            .or(file.allow_unpinned)
            .unwrap_or(false),
        firewall_ports: file.firewall_ports.unwrap_or(FIREWALL_PORTS.into()),
        allow_plain: flags.allow_plain.or(file.allow_plain).unwrap_or(false),
        device_type: path(flags.device_type, file.device_type, || {
            host_root.join("mnt/boot/device-type.json")
        })?,
        config_json: path(flags.config_json, file.config_json, || {
            host_root.join("mnt/boot/config.json")
        })?,
        host_actions: flags.host_actions.or(file.host_actions).unwrap_or_default(),
        dbus_address: flags
            .dbus_address
            .or(file.dbus_address)
            .unwrap_or_else(|| os::system_bus_below(&host_root)),
        // A bare name is looked up in the search path, so it is not made absolute.
        journal_program: flags
            .journal_program
            .or(file.journal_program)
            .unwrap_or_else(|| "journalctl".into()),
        vpn_unit: flags
            .vpn_unit
            .or(file.vpn_unit)
            .unwrap_or_else(|| "openvpn.service".into())
            .parse()?,
        own_app: match flags.own_app.or(file.own_app) {
            Some(uuid) => Some(uuid.parse()?),
            None => None,
        },
        host_root,
        service_users: service_users(file.first_service_user)?,
        exclusive: flags.exclusive.or(file.exclusive).unwrap_or(false),
        host_names: host_names(first_filled(flags.host_names, file.host_names))?,
        service_keys: file.service_keys,
        without_effect,
        log: flags.log.or(file.log).unwrap_or_else(|| "info".into()),
        branding: file.branding,
        plugins: file.plugins,
        wasm_program: bin.join("supervisor-wasm"),
        compiler: bin.join("supervisor-compile"),
    })
}

fn first_filled<T>(flags: Vec<T>, file: Vec<T>) -> Vec<T> {
    if flags.is_empty() { file } else { flags }
}

fn path(
    flag: Option<PathBuf>,
    file: Option<PathBuf>,
    default: impl FnOnce() -> PathBuf,
) -> Result<PathBuf> {
    let path = flag.or(file).unwrap_or_else(default);
    std::path::absolute(&path).with_context(|| format!("`{}` is not a path", path.display()))
}

/// `local_mode_auth` is what addresses have that say nothing themselves; the one that nobody named is strict.
fn addresses(
    listen: Vec<String>,
    local_mode_auth: api::LocalModeAuth,
) -> Result<Vec<ListenAddress>> {
    if listen.is_empty() {
        let address = SocketAddr::from(([127, 0, 0, 1], DEFAULT_PORT));
        return Ok(vec![ListenAddress::with_keys(address)]);
    }
    listen
        .iter()
        .map(|text| ListenAddress::parse(text, local_mode_auth))
        .collect()
}

/// A range of that length which begins there.
fn service_users(first: Option<u32>) -> Result<UserRange> {
    let range = UserRange::default();
    let first = first.unwrap_or(range.first);
    // Below are the system's users and its people; above, numbers that some programs take for negative ones.
    if first < 1000 || first > i32::MAX.unsigned_abs() - range.count {
        bail!(
            "`first_service_user = {first}` is not valid: there must be {} users from there on, and all must be from 1,000 to {}",
            range.count,
            i32::MAX
        );
    }
    Ok(UserRange { first, ..range })
}

/// In lower case, without the dot of the root, as requests are compared with them.
fn host_names(names: Vec<String>) -> Result<Vec<String>> {
    let name = |text: &String| {
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        let is_name = !name.is_empty()
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
        if is_name {
            Ok(name)
        } else {
            bail!("`{text}` cannot be one of `host_names`: it is not a valid host name")
        }
    };
    names.iter().map(name).collect()
}

/// SSH of the host and the engine over TCP (docs/spec/device.md#firewall).
const FIREWALL_PORTS: [u16; 2] = [22222, 2375];

/// The port of the API (docs/spec/device.md#http).
const DEFAULT_PORT: u16 = 48484;

/// Names become parts of variables, labels, folders and network names, so they are held to what all of
/// these take.
fn check_branding(branding: &Branding) -> Result<()> {
    let Branding {
        env_prefix,
        label_namespace,
        folder,
        network,
        api_level,
        aliases,
    } = branding;
    let variable = |text: &str| {
        text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
            && !text.starts_with(|c: char| c.is_ascii_digit())
            && !text.is_empty()
    };
    let name = |text: &str| {
        text.bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
            && text.starts_with(|c: char| c.is_ascii_alphanumeric())
    };
    for (key, value, valid) in [
        ("env_prefix", env_prefix, variable(env_prefix)),
        ("label_namespace", label_namespace, name(label_namespace)),
        ("folder", folder, name(folder)),
        ("network", network, name(network)),
    ] {
        if !valid {
            bail!(
                "`{value}` cannot be `{key}` of `[branding]`: it has characters that names may not have"
            );
        }
    }
    if let Some(alias) = aliases.iter().find(|alias| !variable(alias)) {
        bail!(
            "`{alias}` cannot be one of `aliases` of `[branding]`: it is not part of a variable's name"
        );
    }
    let numbers: Option<Vec<u32>> = api_level.split('.').map(|part| part.parse().ok()).collect();
    match numbers.as_deref() {
        Some(level @ [_, _, _]) if *level >= LOWEST_API_LEVEL[..] => Ok(()),
        _ => bail!(
            "`{api_level}` cannot be `api_level` of `[branding]`: it must be three numbers separated by dots, at least 16.6.0"
        ),
    }
}

/// Clients gate features on the level (docs/spec/device.md#api-level).
const LOWEST_API_LEVEL: [u32; 3] = [16, 6, 0];

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(flags: Flags, file: &str) -> Result<Configuration> {
        let file = toml::from_str(file).context("failed to parse")?;
        merge(flags, file, Path::new("/opt/dist/bin/supervisor"))
    }

    #[test]
    fn defaults_are_beside_the_program() {
        let configuration = merged(Flags::default(), "").unwrap();
        assert_eq!(configuration.plugin_dirs, [Path::new("/opt/dist/plugins")]);
        assert_eq!(configuration.policy, Path::new("/opt/dist/policy.toml"));
        assert_eq!(
            configuration.stock_plugins,
            Path::new("/opt/dist/stock-plugins.toml")
        );
        assert!(!configuration.allow_unpinned);
        assert_eq!(configuration.plain_http(), PlainHttp::Loopback);
        assert_eq!(
            configuration.compiler,
            Path::new("/opt/dist/bin/supervisor-compile")
        );
        assert_eq!(
            configuration.wasm_program,
            Path::new("/opt/dist/bin/supervisor-wasm")
        );
        let address = "127.0.0.1:48484".parse().unwrap();
        assert_eq!(configuration.listen, [ListenAddress::with_keys(address)]);
        assert_eq!(
            configuration.device_type,
            Path::new("/mnt/boot/device-type.json")
        );
        assert_eq!(
            configuration.config_json,
            Path::new("/mnt/boot/config.json")
        );
        assert_eq!(configuration.host_actions, HostActions::Dbus);
        assert_eq!(configuration.journal_program, Path::new("journalctl"));
        assert_eq!(configuration.vpn_unit.as_str(), "openvpn.service");
        assert_eq!(
            configuration.dbus_address,
            "unix:path=/run/dbus/system_bus_socket"
        );
    }

    #[test]
    fn flags_win_over_the_file_and_the_file_over_defaults() {
        let file = r#"
            state_dir = "/file/state"
            host_root = "/file/root"
            listen = ["127.0.0.1:1", "[::1]:2=open+any-process"]
            engine = "wasm"
            exclusive = true
            allow_plain = true
            local_mode_auth = "local-endpoints"
            host_names = ["Board.example.com."]
            service_keys = "own-app"
            host_actions = "rehearse"
            plugin_dirs = ["/file/plugins"]
            [branding]
            api_level = "20.1.0"
            [plugins.led-blink]
            led = "ACT"
        "#;
        let flags = Flags {
            state_dir: Some("/flag/state".into()),
            plugin_dirs: vec!["/flag/plugins".into()],
            exclusive: Some(false),
            ..Flags::default()
        };
        let merged = merged(flags, file).unwrap();
        assert_eq!(merged.state_dir, Path::new("/flag/state"));
        assert_eq!(merged.plugin_dirs, [Path::new("/flag/plugins")]);
        assert!(!merged.exclusive);
        assert_eq!(merged.plain_http(), PlainHttp::Anywhere);
        assert_eq!(merged.host_root, Path::new("/file/root"));
        assert_eq!(
            merged.device_type,
            Path::new("/file/root/mnt/boot/device-type.json")
        );
        assert_eq!(
            merged.config_json,
            Path::new("/file/root/mnt/boot/config.json")
        );
        assert_eq!(merged.host_actions, HostActions::Rehearse);
        assert_eq!(
            merged.dbus_address,
            "unix:path=/file/root/run/dbus/system_bus_socket"
        );
        assert_eq!(merged.listen.len(), 2);
        assert_eq!(merged.engine, EngineChoice::Wasm);
        let auths: Vec<_> = merged.listen.iter().map(|l| l.keyless.auth).collect();
        assert_eq!(
            auths,
            [api::LocalModeAuth::LocalEndpoints, api::LocalModeAuth::Open]
        );
        assert_eq!(merged.host_names, ["board.example.com"]);
        assert_eq!(merged.service_keys, api::ServiceKeys::OwnApp);
        assert!(merged.without_effect.is_empty());
        assert_eq!(merged.branding.api_level, "20.1.0");
        assert_eq!(merged.plugins["led-blink"]["led"].as_str(), Some("ACT"));
    }

    #[test]
    fn h3_an_address_that_nobody_named_is_not_opened() {
        let configuration = merged(Flags::default(), "local_mode_auth = \"open\"").unwrap();
        assert_eq!(
            configuration.listen[0].keyless.auth,
            api::LocalModeAuth::Strict
        );
        assert!(configuration.without_effect[0].contains("`listen`"));
    }

    #[test]
    fn what_the_file_may_not_say_is_an_error_that_names_it() {
        for (file, named) in [
            ("engine = \"wasm\"\nstat_dir = \"x\"", "line 2"),
            ("engine = \"podman\"", "line 1"),
            ("firewall_ports = [70000]", "line 1"),
            ("host_actions = \"none\"", "line 1"),
            ("listen = [\"localhost\"]", "localhost"),
            ("host_names = [\"a b\"]", "`a b`"),
            ("host_names = [\".\"]", "`.`"),
            ("service_keys = \"none\"", "line 1"),
            ("vpn_unit = \"openvpn\"", "`openvpn`"),
            ("[branding]\napi_level = \"1.0.0\"", "api_level"),
            ("[branding]\napi_level = \"20\"", "api_level"),
            ("[branding]\nenv_prefix = \"A B\"", "env_prefix"),
            ("[branding]\nfolder = \"../x\"", "folder"),
            ("[branding]\nnmae = \"x\"", "line 2"),
        ] {
            let error = merged(Flags::default(), file).unwrap_err();
            let chain = format!("{error:#}");
            assert!(chain.contains(named), "{file}: {chain}");
        }
    }
}
