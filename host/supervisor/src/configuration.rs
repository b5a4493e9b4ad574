//! Combines flags, environment, file and defaults into one [`Configuration`].
//!
//! An unknown key in the file is an error that names its line: otherwise a misspelt key would be a
//! setting that silently has no effect.

mod file;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{ArgMatches, FromArgMatches};
use cloud_link::PlainHttp;
use engine::wasm::UserRange;
use model::{AppUuid, Branding};
use os::UnitName;

use crate::arguments::Flags;
use crate::listen_address::ListenAddress;
use crate::settings::{EngineChoice, HostActions, Settings};
use file::{ConfigurationFile, InvalidSetting};

/// All settings, fixed for the lifetime of the process.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Configuration {
    pub(crate) state_dir: PathBuf,
    pub(crate) listen: Vec<ListenAddress>,
    pub(crate) engine: EngineChoice,
    pub(crate) docker_host: String,
    pub(crate) plugin_dirs: Vec<PathBuf>,
    pub(crate) policy: PathBuf,
    /// The file that lists the plugins in the layout and their files.
    pub(crate) stock_plugins: PathBuf,
    pub(crate) allow_unpinned: bool,
    /// TCP ports that stay open if a target enables the firewall.
    pub(crate) firewall_ports: BTreeSet<u16>,
    /// Whether the cloud may be another machine without TLS.
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
    /// The users for the processes of wasm services.
    pub(crate) service_users: UserRange,
    /// Names by which clients may call the device in addition to its own, in lower case.
    pub(crate) host_names: Vec<String>,
    /// What the keys of services give access to.
    pub(crate) service_keys: api::ServiceKeys,
    /// Settings that have no effect, a sentence each.
    pub(crate) without_effect: Vec<String>,
    pub(crate) log: String,
    pub(crate) branding: Branding,
    /// By the plugin's name; passed on unchanged.
    pub(crate) plugins: toml::Table,
    /// The program that runs components, next to this one.
    pub(crate) wasm_program: PathBuf,
    /// The program that compiles components, next to this one.
    pub(crate) compiler: PathBuf,
}

impl Configuration {
    /// Returns where the cloud may be contacted without TLS.
    pub(crate) fn plain_http(&self) -> PlainHttp {
        if self.allow_plain {
            PlainHttp::Anywhere
        } else {
            PlainHttp::Loopback
        }
    }
}

/// Completes the settings. Relative paths, also those in the file, are relative to the working
/// folder.
///
/// # Errors
/// If the file cannot be read or contains an unknown key, or if a value is invalid.
pub(crate) fn resolve(flags: Flags) -> Result<Configuration> {
    let program = std::env::current_exe().context("failed to find this program's own file")?;
    let path = flags.0.get_one::<PathBuf>("config");
    let file = path.map(|path| ConfigurationFile::read(path)).transpose()?;
    merge(file.as_ref(), &flags.0, &program)
}

/// Combines the file and the flags, and completes them.
fn merge(
    file: Option<&ConfigurationFile>,
    flags: &ArgMatches,
    program: &Path,
) -> Result<Configuration> {
    let mut settings = match file {
        Some(file) => file.settings()?,
        None => Settings::default(),
    };
    settings.update_from_arg_matches(flags)?;
    complete(settings, program).map_err(|error| {
        let invalid = error.downcast_ref::<InvalidSetting>();
        let of_file = invalid.filter(|setting| {
            let flag = setting.flag();
            flag.is_none_or(|flag| !flags.ids().any(|id| id.as_str() == flag))
        });
        match of_file.and_then(|setting| file?.place_of(setting)) {
            Some(place) => anyhow::anyhow!("{place}: {error}"),
            None => error,
        }
    })
}

fn complete(settings: Settings, program: &Path) -> Result<Configuration> {
    let bin = program.parent().unwrap_or(Path::new("/"));
    let layout = bin.parent().unwrap_or(bin);
    let host_root = path(settings.host_root, || "/".into())?;
    check_branding(&settings.branding)?;
    let local_mode_auth = settings
        .local_mode_auth
        .map_or_else(Default::default, Into::into);
    let mut without_effect = Vec::new();
    if settings.listen.is_empty() && local_mode_auth != api::LocalModeAuth::Strict {
        without_effect.push(format!(
            "`local_mode_auth` applies only to the addresses in `listen`: without `listen = [\"127.0.0.1:{DEFAULT_PORT}\"]` local mode requires keys"
        ));
    }
    Ok(Configuration {
        state_dir: path(settings.state_dir, || "/var/lib/supervisor".into())?,
        listen: addresses(settings.listen, local_mode_auth)?,
        engine: settings.engine.unwrap_or_default(),
        docker_host: settings
            .docker_host
            .or_else(|| std::env::var("DOCKER_HOST").ok())
            .filter(|uri| !uri.is_empty())
            .unwrap_or_else(|| engine::docker::DEFAULT_URI.into()),
        plugin_dirs: match settings.plugin_dirs {
            dirs if dirs.is_empty() => vec![layout.join("plugins")],
            dirs => dirs
                .iter()
                .map(std::path::absolute)
                .collect::<Result<_, _>>()?,
        },
        policy: path(settings.policy, || layout.join("policy.toml"))?,
        // A part of the layout, like the compiler: not configurable by the owner.
        stock_plugins: layout.join("stock-plugins.toml"),
        allow_unpinned: settings.allow_unpinned.unwrap_or(false),
        firewall_ports: settings.firewall_ports.unwrap_or(FIREWALL_PORTS.into()),
        allow_plain: settings.allow_plain.unwrap_or(false),
        device_type: path(settings.device_type, || {
            host_root.join("mnt/boot/device-type.json")
        })?,
        config_json: path(settings.config_json, || {
            host_root.join("mnt/boot/config.json")
        })?,
        host_actions: settings.host_actions.unwrap_or_default(),
        dbus_address: settings
            .dbus_address
            .unwrap_or_else(|| os::system_bus_below(&host_root)),
        // A bare name is looked up in the search path, so it is not made absolute.
        journal_program: settings
            .journal_program
            .unwrap_or_else(|| "journalctl".into()),
        vpn_unit: settings
            .vpn_unit
            .as_deref()
            .unwrap_or("openvpn.service")
            .parse::<UnitName>()
            .map_err(|error| invalid("vpn_unit", &error))?,
        own_app: settings
            .own_app
            .map(|uuid| uuid.parse::<AppUuid>())
            .transpose()
            .map_err(|error| invalid("own_app", &error))?,
        host_root,
        service_users: service_users(settings.first_service_user)?,
        exclusive: settings.exclusive.unwrap_or(false),
        host_names: host_names(settings.host_names)?,
        service_keys: settings.service_keys,
        without_effect,
        log: settings.log.unwrap_or_else(|| "info".into()),
        branding: settings.branding,
        plugins: settings.plugins,
        wasm_program: bin.join("supervisor-wasm"),
        compiler: bin.join("supervisor-compile"),
    })
}

/// Returns the error of a setting with its causes.
fn invalid(key: &'static str, error: &dyn std::error::Error) -> InvalidSetting {
    InvalidSetting::new(key, model::error_chain(error))
}

fn path(setting: Option<PathBuf>, default: impl FnOnce() -> PathBuf) -> Result<PathBuf> {
    let path = setting.unwrap_or_else(default);
    std::path::absolute(&path).with_context(|| format!("`{}` is not a path", path.display()))
}

/// Returns the addresses. `local_mode_auth` applies to addresses without their own setting; the default address is
/// strict.
fn addresses(
    listen: Vec<String>,
    local_mode_auth: api::LocalModeAuth,
) -> Result<Vec<ListenAddress>> {
    if listen.is_empty() {
        let address = SocketAddr::from(([127, 0, 0, 1], DEFAULT_PORT));
        return Ok(vec![ListenAddress::with_keys(address)]);
    }
    let addresses = listen.iter().map(|text| {
        ListenAddress::parse(text, local_mode_auth)
            .map_err(|error| InvalidSetting::new("listen", format!("{error:#}")).into())
    });
    addresses.collect()
}

/// Returns the range of users that begins with `first`.
fn service_users(first: Option<u32>) -> Result<UserRange> {
    let range = UserRange::default();
    let first = first.unwrap_or(range.first);
    // Lower numbers belong to the system and its people; higher ones are negative for some programs.
    if first < 1000 || first > i32::MAX.unsigned_abs() - range.count {
        let reason = format!(
            "{first} is not allowed: the {} user numbers from there on must all be from 1,000 to {}",
            range.count,
            i32::MAX
        );
        return Err(InvalidSetting::new("first_service_user", reason).into());
    }
    Ok(UserRange { first, ..range })
}

/// Returns the names in lower case and without the dot of the root, as they are compared with
/// requests.
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
            let reason = format!(
                "`{text}` is not a valid host name: letters, digits, `-`, `_` and `.` are allowed"
            );
            Err(InvalidSetting::new("host_names", reason).into())
        }
    };
    names.iter().map(name).collect()
}

/// SSH of the host, and the engine over TCP (docs/spec/device.md#firewall).
const FIREWALL_PORTS: [u16; 2] = [22222, 2375];

/// The port of the API (docs/spec/device.md#http).
const DEFAULT_PORT: u16 = 48484;

/// Names become parts of variables, labels, folders and network names, so they must be valid in all
/// of these.
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
    let invalid = |key: &'static str, reason: String| -> Result<()> {
        Err(InvalidSetting::in_table("branding", key, reason).into())
    };
    if let Some((key, text)) = [("env_prefix", env_prefix)]
        .into_iter()
        .chain(aliases.iter().map(|alias| ("aliases", alias)))
        .find(|(_, text)| !variable(text))
    {
        return invalid(
            key,
            format!(
                "`{text}` cannot be part of a variable's name: letters, digits and `_` are allowed, and no digit at the beginning"
            ),
        );
    }
    for (key, text) in [
        ("label_namespace", label_namespace),
        ("folder", folder),
        ("network", network),
    ] {
        if !name(text) {
            return invalid(
                key,
                format!(
                    "`{text}` is not a valid name: letters, digits, `_`, `.` and `-` are allowed, and a letter or a digit at the beginning"
                ),
            );
        }
    }
    let numbers: Option<Vec<u32>> = api_level.split('.').map(|part| part.parse().ok()).collect();
    match numbers.as_deref() {
        Some(level @ [_, _, _]) if *level >= LOWEST_API_LEVEL[..] => Ok(()),
        _ => invalid(
            "api_level",
            format!("`{api_level}` must be three numbers separated by dots, at least 16.6.0"),
        ),
    }
}

/// The lowest API level. Clients gate features on it (docs/spec/device.md#api-level).
const LOWEST_API_LEVEL: [u32; 3] = [16, 6, 0];

#[cfg(test)]
mod tests;
