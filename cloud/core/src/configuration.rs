//! The settings of the cloud, combined from flags, environment and configuration file.

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

/// Creates a number of at least 1.
const fn count(number: u32) -> NonZeroU32 {
    NonZeroU32::MIN.saturating_add(number - 1)
}

/// Creates a number of seconds, at least 1.
const fn seconds(number: u16) -> NonZeroU16 {
    NonZeroU16::MIN.saturating_add(number - 1)
}

/// How much of the audit log is kept.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuditSettings {
    /// Days for which an event is kept.
    pub days: NonZeroU32,
    /// Maximum number of events; the oldest are deleted.
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

/// How long credentials are valid.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CredentialSettings {
    /// Days after which a session ends, however much it is used.
    pub session_days: NonZeroU32,
    /// Days after which a user's key that was created without an end date expires; if none, such a key never expires.
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

/// Who may create new users.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Registration {
    /// Only administrators of the cloud.
    #[default]
    Closed,
    /// Everybody.
    Open,
}

/// Limits for one caller. Their values are not disclosed to callers (docs/spec/cloud.md#http-rate-values).
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Requests per minute of one identity, or of one address without an identity.
    pub requests_per_minute: NonZeroU32,
    /// Failed sign-ins to one account from one address, until that pair is refused.
    pub failed_logins: NonZeroU32,
    /// Failed sign-ins from one address (IPv6: from one network of 64 bits), whatever the account.
    pub failed_logins_per_address: NonZeroU32,
    /// Failed sign-ins to one account from any address, within a day; all replicas count together.
    pub failed_logins_per_account: NonZeroU32,
    /// Minutes over which the failed sign-ins of an address are counted.
    pub failed_logins_minutes: NonZeroU32,
    /// Maximum bytes of a body of the data API.
    pub data_body: usize,
    /// Maximum bytes of any other body.
    pub body: usize,
    /// Maximum bytes of a file attached to a release.
    pub release_asset: u64,
    /// Devices that are notified of a change at once, and in each second after that.
    pub pushes_per_second: NonZeroU32,
    /// The former name of the quota of this name.
    pub log_lines_per_second: Option<u32>,
    /// Delay before a deleted device's logs are refused, in seconds: it retries at once.
    pub gone_device_seconds: u64,
    /// Simultaneous connections; if not set, as many as the system allows the program to open.
    pub connections: Option<NonZeroU32>,
    /// Simultaneous connections of one address, except those of devices that have presented their key and of trusted
    /// proxies.
    pub connections_per_address: Option<NonZeroU32>,
    /// Seconds within which the head of a request must arrive.
    pub head_seconds: NonZeroU16,
    /// Seconds that a connection may be idle.
    pub idle_seconds: NonZeroU16,
    /// Seconds within which some more of a request's body must arrive.
    pub body_seconds: NonZeroU16,
    /// Seconds within which some more of an answer must be read.
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
            // More than proxies keep a connection by default, so that they close it and not the cloud.
            idle_seconds: seconds(75),
            body_seconds: seconds(30),
            unread_seconds: seconds(60),
        }
    }
}

/// How long the cloud waits for devices that it reaches by their tunnels.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReachSettings {
    /// Seconds between two pings of a tunnel: less than the time after which proxies in between close an idle
    /// connection.
    ping_seconds: NonZeroU16,
    /// Seconds within which a ping must be answered; otherwise the device counts as gone.
    pong_seconds: NonZeroU16,
    /// Seconds within which a device must begin its answer to a request through the cloud; within which it must end it,
    /// if several devices are asked.
    answer_seconds: NonZeroU16,
    /// Seconds within which a device must confirm that it will check for changes.
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
    /// Returns how the cloud detects that a device is gone.
    pub(crate) fn pings(&self) -> Pings {
        Pings {
            every: Duration::from_secs(self.ping_seconds.get().into()),
            within: Duration::from_secs(self.pong_seconds.get().into()),
        }
    }

    /// Returns how long a device may take until the head of its answer arrives.
    pub fn answer(&self) -> Duration {
        Duration::from_secs(self.answer_seconds.get().into())
    }

    /// Returns how long a device may take to confirm that it will check for changes.
    pub fn push(&self) -> Duration {
        Duration::from_secs(self.push_seconds.get().into())
    }
}

/// Data stored on the server between replicas, and its names.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NatsSettings {
    /// The prefix of all names there, which allows several clouds to share a server.
    pub prefix: String,
    /// Log lines that are kept for one device.
    pub log_lines: u32,
    /// Days for which a line is kept.
    pub log_days: u32,
    /// Maximum bytes of all lines together; the oldest are deleted.
    pub log_bytes: i64,
    /// Servers of a cluster that each store every line.
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

/// The configuration of the cloud.
#[derive(Debug, Clone)]
pub struct Configuration {
    pub listen: SocketAddr,
    pub database: String,
    /// None if this is the only replica.
    pub bus: Option<String>,
    pub admin_email: String,
    pub admin_password: Option<String>,
    pub public_url: Option<String>,
    pub registry: Option<String>,
    /// The address of the registry for the cloud, without a trailing slash; without it, nothing is deleted there.
    pub registry_url: Option<String>,
    /// The keys that encrypt secrets in the database.
    pub keyring: Keyring,
    pub registration: Registration,
    /// The key that identifies external tunnel servers; without it, there are none.
    pub tunnel_server_key: Option<String>,
    /// Proxies whose information about a request's origin is trusted.
    pub trusted_proxies: Vec<IpNet>,
    pub branding: Branding,
    pub limits: Limits,
    pub pools: PoolSettings,
    /// The default quotas of organizations.
    pub quotas: Quotas,
    pub credentials: CredentialSettings,
    pub audit: AuditSettings,
    pub reach: ReachSettings,
    pub nats: NatsSettings,
}
