//! The settings of the cloud: flags, environment and configuration file together.

use std::fs;
use std::net::SocketAddr;
use std::num::{NonZeroU16, NonZeroU32};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use data::Keyring;
use data::quota::Quotas;
use ipnet::IpNet;
use resources::Branding;
use serde::Deserialize;
use tunnel::Pings;

use crate::arguments::{LogFormat, Serve};
use crate::keyring_file;
use crate::pools::PoolSettings;

/// Characters of a key that somebody makes up.
const SHORTEST_KEY: usize = 16;

/// What the configuration file may say.
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

/// How much is kept of who did what.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AuditSettings {
    /// Days that an event is kept for.
    pub(crate) days: NonZeroU32,
    /// Events that are kept; the oldest go.
    pub(crate) rows: NonZeroU32,
}

impl Default for AuditSettings {
    fn default() -> Self {
        AuditSettings {
            days: NonZeroU32::MIN.saturating_add(89),
            rows: NonZeroU32::MIN.saturating_add(999_999),
        }
    }
}

/// How long credentials are good for.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct CredentialSettings {
    /// Days after which a session ends, however much it is used.
    pub(crate) session_days: NonZeroU32,
    /// Days after which a key of a user ends that was made without saying until when it is good; none where such a
    /// key is good without end.
    pub(crate) key_days: Option<NonZeroU32>,
}

impl Default for CredentialSettings {
    fn default() -> Self {
        CredentialSettings {
            session_days: NonZeroU32::MIN.saturating_add(29),
            key_days: None,
        }
    }
}

/// Who may make new users.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Registration {
    /// Administrators of organizations.
    #[default]
    Closed,
    /// Everybody.
    Open,
}

/// How much one caller may do. Values are not told to callers (docs/spec/cloud.md#http-rate-values).
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Limits {
    /// Requests a minute of one identity, or of one address without one.
    pub(crate) requests_per_minute: NonZeroU32,
    /// Sign-ins that fail, of one account from one address, until that pair is refused.
    pub(crate) failed_logins: NonZeroU32,
    /// The same from one address (IPv6: from one network of 64 bits), whatever the account.
    pub(crate) failed_logins_per_address: NonZeroU32,
    /// The same of one account from wherever, within a day; all replicas count together.
    pub(crate) failed_logins_per_account: NonZeroU32,
    /// Minutes in which those of an address are counted.
    pub(crate) failed_logins_minutes: NonZeroU32,
    /// Bytes of a body of the data API.
    pub(crate) data_body: usize,
    /// Bytes of any other body.
    pub(crate) body: usize,
    /// Bytes of a file beside a release.
    pub(crate) release_asset: u64,
    /// Devices that are told of a change at once, and in each second from then on.
    pub(crate) pushes_per_second: NonZeroU32,
    /// What earlier versions called the quota of this name.
    pub(crate) log_lines_per_second: Option<u32>,
    /// How late a device that is gone is refused its logs, in seconds: it tries again at once.
    pub(crate) gone_device_seconds: u64,
    /// Connections at a time; without it, as many as the system lets the program open.
    pub(crate) connections: Option<NonZeroU32>,
    /// Those of one address, but for devices that have shown their key and trusted proxies.
    pub(crate) connections_per_address: Option<NonZeroU32>,
    /// Seconds for the head of a request.
    pub(crate) head_seconds: NonZeroU16,
    /// Seconds that a connection may be idle.
    pub(crate) idle_seconds: NonZeroU16,
    /// Seconds in which some of the body of a request has to come.
    pub(crate) body_seconds: NonZeroU16,
    /// Seconds in which some of an answer has to be read.
    pub(crate) unread_seconds: NonZeroU16,
}

impl Default for Limits {
    fn default() -> Self {
        const fn count(number: u32) -> NonZeroU32 {
            match NonZeroU32::new(number) {
                Some(number) => number,
                None => NonZeroU32::MIN,
            }
        }
        const fn seconds(number: u16) -> NonZeroU16 {
            match NonZeroU16::new(number) {
                Some(number) => number,
                None => NonZeroU16::MIN,
            }
        }
        Limits {
            requests_per_minute: count(6000),
            failed_logins: count(10),
            failed_logins_per_address: count(100),
            failed_logins_per_account: count(100),
            failed_logins_minutes: count(60),
            data_body: 8 << 20,
            body: 512_000,
            release_asset: 500_000_000,
            pushes_per_second: count(100),
            log_lines_per_second: None,
            gone_device_seconds: 55,
            connections: None,
            connections_per_address: None,
            head_seconds: seconds(30),
            // More than proxies keep a connection for by default, so that they end it rather than the cloud.
            idle_seconds: seconds(75),
            body_seconds: seconds(30),
            unread_seconds: seconds(60),
        }
    }
}

/// How long devices are waited for that are reached by their tunnels.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ReachSettings {
    /// Seconds between two pings of a tunnel: less than what proxies in between allow a connection to be idle.
    ping_seconds: NonZeroU16,
    /// Seconds in which one is answered, or the device counts as gone.
    pong_seconds: NonZeroU16,
    /// Seconds in which a device begins its answer to whoever asks it through the cloud.
    answer_seconds: NonZeroU16,
    /// Seconds in which a device answers that it will look for what is new.
    push_seconds: NonZeroU16,
}

impl Default for ReachSettings {
    fn default() -> Self {
        const fn seconds(number: u16) -> NonZeroU16 {
            match NonZeroU16::new(number) {
                Some(number) => number,
                None => NonZeroU16::MIN,
            }
        }
        ReachSettings {
            ping_seconds: seconds(30),
            pong_seconds: seconds(20),
            answer_seconds: seconds(50),
            push_seconds: seconds(20),
        }
    }
}

impl ReachSettings {
    /// How the cloud finds out that a device is gone.
    pub(crate) fn pings(&self) -> Pings {
        Pings {
            every: Duration::from_secs(self.ping_seconds.get().into()),
            within: Duration::from_secs(self.pong_seconds.get().into()),
        }
    }

    /// How long a device may take to the head of an answer.
    pub(crate) fn answer(&self) -> Duration {
        Duration::from_secs(self.answer_seconds.get().into())
    }

    /// How long a device may take to answer that it will look.
    pub(crate) fn push(&self) -> Duration {
        Duration::from_secs(self.push_seconds.get().into())
    }
}

/// What is kept and named at the server between replicas.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct NatsSettings {
    /// What all names there begin with, so that several clouds can share a server.
    pub(crate) prefix: String,
    /// Lines of logs that are kept of one device.
    pub(crate) log_lines: u32,
    /// Days that a line is kept for.
    pub(crate) log_days: u32,
    /// Bytes that all lines together may take; the oldest go.
    pub(crate) log_bytes: i64,
    /// Servers of a cluster that each keep every line.
    pub(crate) log_copies: u8,
}

impl Default for NatsSettings {
    fn default() -> Self {
        NatsSettings {
            prefix: "fleet".to_owned(),
            log_lines: 1000,
            log_days: 30,
            log_bytes: 4 << 30,
            log_copies: 1,
        }
    }
}

impl NatsSettings {
    fn check(&self) -> Result<()> {
        let NatsSettings { prefix, .. } = self;
        let usable = (1..=32).contains(&prefix.len())
            && prefix
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        if !usable {
            bail!(
                "`{prefix}` is not a valid prefix for the bus (`nats.prefix`): it must have 1 to 32 letters, digits, `-` and `_`"
            );
        }
        if self.log_lines == 0 || self.log_days == 0 || self.log_bytes < 1 << 20 {
            bail!(
                "lines of logs cannot be kept with these limits: `nats.log_lines` and `nats.log_days` are 1 or more, \
                 `nats.log_bytes` is 1048576 or more"
            );
        }
        if !(1..=5).contains(&self.log_copies) {
            bail!(
                "`nats.log_copies` is {}, and must be 1 to 5",
                self.log_copies
            );
        }
        Ok(())
    }
}

/// What the cloud goes by.
#[derive(Debug, Clone)]
pub(crate) struct Configuration {
    pub(crate) listen: SocketAddr,
    pub(crate) database: String,
    /// None where this replica is alone.
    pub(crate) bus: Option<String>,
    pub(crate) admin_email: String,
    pub(crate) admin_password: Option<String>,
    pub(crate) public_url: Option<String>,
    pub(crate) registry: Option<String>,
    /// How the cloud reaches the registry, without a slash at its end; nothing is deleted there without it.
    pub(crate) registry_url: Option<String>,
    /// What secrets in the database are encrypted with.
    pub(crate) keyring: Keyring,
    pub(crate) log_format: LogFormat,
    pub(crate) registration: Registration,
    /// By which tunnel servers beside this cloud are known; there are none without it.
    pub(crate) tunnel_server_key: Option<String>,
    /// Whose word on where a request comes from is taken.
    pub(crate) trusted_proxies: Vec<IpNet>,
    pub(crate) branding: Branding,
    pub(crate) limits: Limits,
    pub(crate) pools: PoolSettings,
    /// What organizations may keep, unless they are given others.
    pub(crate) quotas: Quotas,
    pub(crate) credentials: CredentialSettings,
    pub(crate) audit: AuditSettings,
    pub(crate) reach: ReachSettings,
    pub(crate) nats: NatsSettings,
}

impl Configuration {
    /// Flags and environment over the file, that over defaults.
    ///
    /// # Errors
    /// Where the file cannot be read, or a value cannot be used.
    pub(crate) fn of(given: Serve) -> Result<Self> {
        let file = match &given.config {
            Some(path) => read(path)?,
            None => File::default(),
        };
        let listen = given.listen.or(file.listen);
        let listen = listen.unwrap_or_else(|| "127.0.0.1:8080".to_owned());
        let listen = listen.parse().with_context(|| {
            format!("`{listen}` is not an address to listen on; write it as `127.0.0.1:8080`")
        })?;
        let admin_email = given
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
        let public_url = given.public_url.or(file.public_url);
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
                "`public_url` is missing (`--public-url`, `https://cloud.example.com`): whoever comes from other \
                 machines is given addresses of this cloud, which must not be of the asker's choice"
            );
        }
        let bus = given.bus.or(file.bus).filter(|bus| !bus.is_empty());
        let database = given
            .database
            .or(file.database)
            .unwrap_or_else(|| "sqlite:fleet-cloud.sqlite".to_owned());
        if bus.is_some() && database.starts_with("sqlite:") {
            bail!(
                "several replicas (`--bus`) share a PostgreSQL database: `--database postgres://…`"
            );
        }
        let registry = given.registry.or(file.registry);
        let registry_url = given.registry_url.or(file.registry_url);
        if let Some(url) = &registry_url {
            if !(url.starts_with("http://") || url.starts_with("https://")) {
                bail!(
                    "`{url}` is not an address of a registry (`registry_url`); it must begin with `https://` or `http://`"
                );
            }
            if registry.is_none() {
                bail!(
                    "`registry_url` is given, and `registry`, the host of it in names of images, is missing"
                );
            }
        }
        file.nats.check()?;
        let keys = given.secrets_key_file.or(file.secrets_key_file);
        let keyring = match keys {
            Some(path) => keyring_file::read(&path)?,
            None => Keyring::default(),
        };
        Ok(Configuration {
            listen,
            database,
            bus,
            admin_email,
            admin_password: given.admin_password.or(file.admin_password),
            public_url: public_url.map(|url| url.trim_end_matches('/').to_owned()),
            registry,
            registry_url: registry_url.map(|url| url.trim_end_matches('/').to_owned()),
            keyring,
            log_format: given
                .log_format
                .or(file.log_format)
                .unwrap_or(LogFormat::Text),
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
        })
    }
}

fn read(path: &Path) -> Result<File> {
    let text = fs::read_to_string(path)
        .with_context(|| format!("the configuration file {} cannot be read", path.display()))?;
    toml::from_str(&text)
        .with_context(|| format!("the configuration file {} is not right", path.display()))
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
        let given = Serve {
            listen: Some("127.0.0.1:2".to_owned()),
            config: Some(path),
            ..Serve::default()
        };
        let configuration = Configuration::of(given).expect("a configuration");
        assert_eq!(configuration.listen.port(), 2);
        assert_eq!(configuration.database, "sqlite:a");
        assert_eq!(configuration.limits.requests_per_minute.get(), 7);
        assert_eq!(configuration.limits.body, 512_000);
        assert_eq!(configuration.branding.env_prefix, "ACME_");
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let refused =
            |given: Serve| format!("{:#}", Configuration::of(given).expect_err("refused"));
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
            let given = Serve {
                config: Some(path.clone()),
                ..Serve::default()
            };
            let why = refused(given);
            assert!(why.contains(named), "{text}: {why}");
        }
    }
}
