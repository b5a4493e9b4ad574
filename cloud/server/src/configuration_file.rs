//! Reads the settings of the cloud from flags, environment and configuration file.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use cloud_core::configuration::{
    AuditSettings, Configuration, CredentialSettings, Limits, NatsSettings, ReachSettings,
    Registration,
};
use cloud_core::pools::PoolSettings;
use data::Keyring;
use data::quota::Quotas;
use ipnet::IpNet;
use resources::Branding;
use serde::Deserialize;

use crate::arguments::{LogFormat, Serve};
use crate::keyring_file;

/// Minimum number of characters of a key chosen by a person.
const SHORTEST_KEY: usize = 16;

/// The contents of the configuration file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct File {
    listen: Option<String>,
    database: Option<String>,
    bus: Option<String>,
    admin_email: Option<String>,
    admin_password: Option<String>,
    public_url: Option<String>,
    registry: Option<String>,
    registry_url: Option<String>,
    secrets_key_file: Option<PathBuf>,
    log_format: Option<LogFormat>,
    registration: Registration,
    tunnel_server_key: Option<String>,
    trusted_proxies: Vec<IpNet>,
    branding: Branding,
    limits: Limits,
    pools: PoolSettings,
    quotas: Quotas,
    credentials: CredentialSettings,
    audit: AuditSettings,
    reach: ReachSettings,
    nats: NatsSettings,
}

/// Returns the settings of the cloud, and the log format: flags and environment take precedence over the file, which
/// takes precedence over defaults.
///
/// # Errors
/// If the file cannot be read, or a value cannot be used.
pub(crate) fn load(arguments: Serve) -> Result<(Configuration, LogFormat)> {
    let file = match &arguments.config {
        Some(path) => read(path)?,
        None => File::default(),
    };
    let listen = arguments.listen.or(file.listen);
    let listen = listen.unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let listen = listen.parse().with_context(|| {
        format!("`{listen}` is not an address to listen on; write it as `127.0.0.1:8080`")
    })?;
    let admin_email = arguments
        .admin_email
        .or(file.admin_email)
        .unwrap_or_else(|| "admin@localhost.localdomain".to_owned());
    if !admin_email.contains('@') {
        bail!("`{admin_email}` is not an e-mail address for the administrator");
    }
    let tunnel_server_key = file.tunnel_server_key;
    if tunnel_server_key
        .as_ref()
        .is_some_and(|key| key.len() < SHORTEST_KEY)
    {
        bail!("`tunnel_server_key` has fewer than {SHORTEST_KEY} characters");
    }
    let public_url = arguments.public_url.or(file.public_url);
    if let Some(url) = &public_url
        && !(url.starts_with("http://") || url.starts_with("https://"))
    {
        bail!(
            "`{url}` is not an address of this cloud; it must begin with `https://` or `http://`"
        );
    }
    let listen: SocketAddr = listen;
    if public_url.is_none() && !listen.ip().to_canonical().is_loopback() {
        bail!(
            "`public_url` is missing (`--public-url`, `https://cloud.example.com`): answers to other machines contain addresses of this cloud, which must not depend on what a request says"
        );
    }
    let bus = arguments.bus.or(file.bus).filter(|bus| !bus.is_empty());
    let database = arguments
        .database
        .or(file.database)
        .unwrap_or_else(|| "sqlite:fleet-cloud.sqlite".to_owned());
    if bus.is_some() && database.starts_with("sqlite:") {
        bail!(
            "`--bus` requires PostgreSQL, but `database` is `{database}`; set `--database postgres://…`"
        );
    }
    let registry = arguments.registry.or(file.registry);
    let registry_url = arguments.registry_url.or(file.registry_url);
    if let Some(url) = &registry_url {
        if !(url.starts_with("http://") || url.starts_with("https://")) {
            bail!(
                "`{url}` is not an address of a registry (`registry_url`); it must begin with `https://` or `http://`"
            );
        }
        if registry.is_none() {
            bail!(
                "`registry_url` is set, but `registry` is not; set it to the host with which names of images begin"
            );
        }
    }
    check(&file.nats)?;
    let log_format = arguments.log_format.or(file.log_format);
    let log_format = log_format.unwrap_or(LogFormat::Text);
    let keys = arguments.secrets_key_file.or(file.secrets_key_file);
    let keyring = match keys {
        Some(path) => keyring_file::read(&path)?,
        None => Keyring::default(),
    };
    let configuration = Configuration {
        listen,
        database,
        bus,
        admin_email,
        admin_password: arguments.admin_password.or(file.admin_password),
        public_url: public_url.map(|url| url.trim_end_matches('/').to_owned()),
        registry,
        registry_url: registry_url.map(|url| url.trim_end_matches('/').to_owned()),
        keyring,
        registration: file.registration,
        tunnel_server_key,
        trusted_proxies: file.trusted_proxies,
        branding: file.branding,
        limits: file.limits,
        pools: file.pools,
        quotas: Quotas {
            log_lines_per_second: file
                .limits
                .log_lines_per_second
                .unwrap_or(file.quotas.log_lines_per_second),
            ..file.quotas
        },
        credentials: file.credentials,
        audit: file.audit,
        reach: file.reach,
        nats: file.nats,
    };
    Ok((configuration, log_format))
}

fn read(path: &Path) -> Result<File> {
    let text = fs::read_to_string(path)
        .with_context(|| format!("failed to read the configuration file {}", path.display()))?;
    toml::from_str(&text)
        .with_context(|| format!("the configuration file {} is invalid", path.display()))
}

fn check(settings: &NatsSettings) -> Result<()> {
    let NatsSettings { prefix, .. } = settings;
    let usable = (1..=32).contains(&prefix.len())
        && prefix
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    if !usable {
        bail!(
            "`{prefix}` is not a valid prefix for the bus (`nats.prefix`): it must have 1 to 32 letters, digits, `-` and `_`"
        );
    }
    if settings.log_lines == 0 || settings.log_days == 0 || settings.log_bytes < 1 << 20 {
        bail!(
            "lines of logs cannot be kept with these limits: `nats.log_lines` and `nats.log_days` are 1 or more, \
             `nats.log_bytes` is 1048576 or more"
        );
    }
    if !(1..=5).contains(&settings.log_copies) {
        bail!(
            "`nats.log_copies` is {}, but must be 1 to 5",
            settings.log_copies
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_wins_over_the_file_and_the_file_over_the_default() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("cloud.toml");
        let text = "listen = '127.0.0.1:1'\ndatabase = 'sqlite:a'\n[limits]\nrequests_per_minute = 7\n\
                    [branding]\nenv_prefix = 'ACME_'";
        fs::write(&path, text).expect("a file");
        let arguments = Serve {
            listen: Some("127.0.0.1:2".to_owned()),
            config: Some(path),
            ..Serve::default()
        };
        let (configuration, _) = load(arguments).expect("a configuration");
        assert_eq!(configuration.listen.port(), 2);
        assert_eq!(configuration.database, "sqlite:a");
        assert_eq!(configuration.limits.requests_per_minute.get(), 7);
        assert_eq!(configuration.limits.body, 512_000);
        assert_eq!(configuration.branding.env_prefix, "ACME_");
    }

    #[test]
    fn unusable_settings_are_named() {
        let refused = |arguments: Serve| format!("{:#}", load(arguments).expect_err("refused"));
        let listen = Serve {
            listen: Some("nowhere".to_owned()),
            ..Serve::default()
        };
        assert!(refused(listen).contains("`nowhere` is not an address to listen on"));
        let config = Serve {
            config: Some("/none/such".into()),
            ..Serve::default()
        };
        assert!(refused(config).contains("/none/such"));
        let listen = Serve {
            listen: Some("0.0.0.0:80".to_owned()),
            ..Serve::default()
        };
        assert!(refused(listen).contains("`public_url` is missing"));
        let bus = Serve {
            bus: Some("nats://127.0.0.1".to_owned()),
            ..Serve::default()
        };
        assert!(refused(bus).contains("PostgreSQL"));
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("cloud.toml");
        for (text, named) in [
            ("prefix = 'a.>'", "`a.>`"),
            ("prefix = ''", "prefix"),
            ("log_lines = 0", "`nats.log_lines`"),
            ("log_bytes = 5", "`nats.log_bytes`"),
            ("log_copies = 9", "`nats.log_copies` is 9"),
            ("[reach]\nping_seconds = 0", "ping_seconds"),
            ("[reach]\nanswer_seconds = 70000", "answer_seconds"),
            ("[pools]\nguests = 0", "guests"),
        ] {
            fs::write(&path, format!("[nats]\n{text}")).expect("a file");
            let arguments = Serve {
                config: Some(path.clone()),
                ..Serve::default()
            };
            let why = refused(arguments);
            assert!(why.contains(named), "{text}: {why}");
        }
    }
}
