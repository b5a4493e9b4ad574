//! The settings of the cloud: as flags, environment and configuration file together have them.

use std::net::SocketAddr;
use std::num::{NonZeroU16, NonZeroU32};
use std::time::Duration;

use data::Keyring;
use data::quota::Quotas;
use ipnet::IpNet;
use resources::Branding;
use serde::Deserialize;
use tunnel::Pings;

use crate::pools::PoolSettings;

/// A number from 1 on.
const fn count(number: u32) -> NonZeroU32 {
    NonZeroU32::MIN.saturating_add(number - 1)
}

/// So many seconds, from 1 on.
const fn seconds(number: u16) -> NonZeroU16 {
    NonZeroU16::MIN.saturating_add(number - 1)
}

/// How much is kept of who did what.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuditSettings {
    /// Days that an event is kept for.
    pub days: NonZeroU32,
    /// Events that are kept; the oldest go.
    pub rows: NonZeroU32,
}

impl Default for AuditSettings {
    fn default() -> Self {
        AuditSettings {
            days: count(90),
            rows: count(1_000_000),
        }
    }
}

/// How long credentials are good for.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CredentialSettings {
    /// Days after which a session ends, however much it is used.
    pub session_days: NonZeroU32,
    /// Days after which a key of a user ends that was made without saying until when it is good; none where such a
    /// key is good without end.
    pub key_days: Option<NonZeroU32>,
}

impl Default for CredentialSettings {
    fn default() -> Self {
        CredentialSettings {
            session_days: count(30),
            key_days: None,
        }
    }
}

/// Who may make new users.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Registration {
    /// Administrators of organizations.
    #[default]
    Closed,
    /// Everybody.
    Open,
}

/// How much one caller may do. Values are not told to callers (docs/spec/cloud.md#http-rate-values).
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Requests a minute of one identity, or of one address without one.
    pub requests_per_minute: NonZeroU32,
    /// Sign-ins that fail, of one account from one address, until that pair is refused.
    pub failed_logins: NonZeroU32,
    /// The same from one address (IPv6: from one network of 64 bits), whatever the account.
    pub failed_logins_per_address: NonZeroU32,
    /// The same of one account from wherever, within a day; all replicas count together.
    pub failed_logins_per_account: NonZeroU32,
    /// Minutes in which those of an address are counted.
    pub failed_logins_minutes: NonZeroU32,
    /// Bytes of a body of the data API.
    pub data_body: usize,
    /// Bytes of any other body.
    pub body: usize,
    /// Bytes of a file beside a release.
    pub release_asset: u64,
    /// Devices that are told of a change at once, and in each second from then on.
    pub pushes_per_second: NonZeroU32,
    /// What earlier versions called the quota of this name.
    pub log_lines_per_second: Option<u32>,
    /// How late a device that is gone is refused its logs, in seconds: it tries again at once.
    pub gone_device_seconds: u64,
    /// Connections at a time; without it, as many as the system lets the program open.
    pub connections: Option<NonZeroU32>,
    /// Those of one address, but for devices that have shown their key and trusted proxies.
    pub connections_per_address: Option<NonZeroU32>,
    /// Seconds for the head of a request.
    pub head_seconds: NonZeroU16,
    /// Seconds that a connection may be idle.
    pub idle_seconds: NonZeroU16,
    /// Seconds in which some of the body of a request has to come.
    pub body_seconds: NonZeroU16,
    /// Seconds in which some of an answer has to be read.
    pub unread_seconds: NonZeroU16,
}

impl Default for Limits {
    fn default() -> Self {
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
pub struct ReachSettings {
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
    pub fn answer(&self) -> Duration {
        Duration::from_secs(self.answer_seconds.get().into())
    }

    /// How long a device may take to answer that it will look.
    pub fn push(&self) -> Duration {
        Duration::from_secs(self.push_seconds.get().into())
    }
}

/// What is kept and named at the server between replicas.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NatsSettings {
    /// What all names there begin with, so that several clouds can share a server.
    pub prefix: String,
    /// Lines of logs that are kept of one device.
    pub log_lines: u32,
    /// Days that a line is kept for.
    pub log_days: u32,
    /// Bytes that all lines together may take; the oldest go.
    pub log_bytes: i64,
    /// Servers of a cluster that each keep every line.
    pub log_copies: u8,
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

/// What the cloud goes by.
#[derive(Debug, Clone)]
pub struct Configuration {
    pub listen: SocketAddr,
    pub database: String,
    /// None where this replica is alone.
    pub bus: Option<String>,
    pub admin_email: String,
    pub admin_password: Option<String>,
    pub public_url: Option<String>,
    pub registry: Option<String>,
    /// How the cloud reaches the registry, without a slash at its end; nothing is deleted there without it.
    pub registry_url: Option<String>,
    /// What secrets in the database are encrypted with.
    pub keyring: Keyring,
    pub registration: Registration,
    /// By which tunnel servers beside this cloud are known; there are none without it.
    pub tunnel_server_key: Option<String>,
    /// Whose word on where a request comes from is taken.
    pub trusted_proxies: Vec<IpNet>,
    pub branding: Branding,
    pub limits: Limits,
    pub pools: PoolSettings,
    /// What organizations may keep, unless they are given others.
    pub quotas: Quotas,
    pub credentials: CredentialSettings,
    pub audit: AuditSettings,
    pub reach: ReachSettings,
    pub nats: NatsSettings,
}
