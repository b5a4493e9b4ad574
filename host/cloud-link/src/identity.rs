//! The device's identity at its cloud: the part of config.json about the device (docs/spec/device.md#provisioning).
//!
//! A config.json with `apiEndpoint` makes a managed device. If it has a `uuid`, that is the device's, whatever the
//! store has; otherwise the store's uuid is written into it, so there is only one from then on. A managed device
//! creates its own key at its first start. Both are in the file before they are used: a device that is killed after it
//! has registered uses the same identity for its next registration. The file of an unmanaged device is read and never
//! written.

use std::error::Error;
use std::fmt;
use std::net::IpAddr;

use base64::Engine as _;
use model::{ApiKey, DeviceUuid};
use reqwest::Url;
use serde_json::{Map, Value};

/// The storage of the identity: config.json. The binary implements this with the one file that all writers share.
pub trait ConfigFile: Send + Sync {
    /// Returns all keys; none if there is no file.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a JSON object.
    fn read(&self) -> Result<Map<String, Value>, Box<dyn Error + Send + Sync>>;

    /// Changes keys and leaves the others unchanged. Everything written is on the disk when this returns.
    ///
    /// # Errors
    /// If the file cannot be written; then nothing has changed.
    fn update(
        &self,
        change: &mut dyn FnMut(&mut Map<String, Value>),
    ) -> Result<(), Box<dyn Error + Send + Sync>>;
}

/// The device's identity.
#[derive(Debug, Clone)]
pub struct DeviceIdentity {
    /// The device's uuid, the same with a cloud and without.
    pub uuid: DeviceUuid,
    /// Missing if the device has no cloud.
    pub cloud: Option<Identity>,
}

/// The device's identity at its cloud.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// The device's uuid, `uuid` of config.json.
    pub uuid: DeviceUuid,
    /// `apiEndpoint`, without a slash at its end.
    pub endpoint: String,
    /// `logsEndpoint`: the address for logs, if different.
    pub(crate) logs_endpoint: Option<String>,
    /// Sent as the bearer token of every request.
    device_key: String,
    /// The device's number, once it is registered.
    pub device_id: Option<u64>,
    /// The time of registration, in milliseconds since the epoch.
    pub registered_at: Option<u64>,
    /// The key that registers devices, until it has been used.
    provisioning_key: Option<String>,
    /// PEM: authorities that are trusted in addition to the system's, for a cloud with its own authority.
    pub(crate) authorities: Option<Vec<u8>>,
}

impl Identity {
    /// Returns the device's own key.
    #[must_use]
    pub fn device_key(&self) -> ApiKey {
        ApiKey::from_text(self.device_key.clone())
    }

    /// Returns the key that registers the device.
    #[must_use]
    pub fn provisioning_key(&self) -> Option<ApiKey> {
        self.provisioning_key.clone().map(ApiKey::from_text)
    }

    /// Whether the device is registered with the cloud (docs/spec/device.md#provisioning).
    #[must_use]
    pub fn is_provisioned(&self) -> bool {
        self.device_id.is_some() && self.registered_at.is_some()
    }
}

/// Leaves out the keys.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("uuid", &self.uuid)
            .field("endpoint", &self.endpoint)
            .field("device_id", &self.device_id)
            .finish_non_exhaustive()
    }
}

/// Where the cloud may be reached without TLS. Anybody on the network path can then read the device's key, and decide
/// what the device runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlainHttp {
    /// Only on this machine, where there is no network path.
    Loopback,
    /// Anywhere: the owner has allowed it (`allow_plain`).
    Anywhere,
}

/// Why the device's identity is unknown.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The file cannot be read.
    #[error("failed to read the device's identity from its config.json")]
    Read(#[source] Box<dyn Error + Send + Sync>),
    /// New data, such as a key, cannot be stored.
    #[error("failed to write the device's identity to its config.json")]
    Write(#[source] Box<dyn Error + Send + Sync>),
    /// A value is invalid. It is not shown: it may be a key.
    #[error("`{key}` in config.json is not {expected}")]
    Value {
        /// The key of config.json.
        key: String,
        /// What the value has to be, as the end of a sentence.
        expected: &'static str,
    },
    /// The address begins with `http://`, belongs to another machine, and `allow_plain` is not set.
    #[error(
        "`{key}` in config.json is `{endpoint}`, which has no TLS: anybody on the network path could read this device's key and decide what it runs. Use an address with `https://`, or set `allow_plain = true` in the supervisor's configuration if the network is yours alone"
    )]
    Plain {
        /// The key of config.json.
        key: String,
        /// The address without its path and other parts.
        endpoint: String,
    },
    /// The operating system returned no random bytes.
    #[error("failed to create a key for this device: the system has no random numbers")]
    Random,
}

impl IdentityError {
    fn value(key: &str, expected: &'static str) -> Self {
        let key = key.to_owned();
        IdentityError::Value { key, expected }
    }
}

/// Reads the identity, and completes that of a managed device. `own` is the uuid that the store has for a device whose
/// config.json has none; `root_ca` is the key of config.json that holds further authorities; `plain` says where the
/// cloud may be reached without TLS.
///
/// # Errors
/// [`IdentityError`]; nothing has been sent yet.
pub fn establish(
    config: &dyn ConfigFile,
    own: &DeviceUuid,
    root_ca: &str,
    plain: PlainHttp,
) -> Result<DeviceIdentity, IdentityError> {
    let content = config.read().map_err(IdentityError::Read)?;
    let uuid = match text(&content, "uuid")? {
        None => own.clone(),
        Some(text) => text.parse().map_err(|_| {
            IdentityError::value("uuid", "a device uuid (32 lower-case hexadecimal digits)")
        })?,
    };
    let Some(endpoint) = text(&content, "apiEndpoint")? else {
        return Ok(DeviceIdentity { uuid, cloud: None });
    };
    let device_key = match text(&content, "deviceApiKey")? {
        Some(key) => header_text("deviceApiKey", key)?.to_owned(),
        None => random_key()?,
    };
    let identity = Identity {
        endpoint: checked_endpoint("apiEndpoint", endpoint, plain)?,
        logs_endpoint: match text(&content, "logsEndpoint")? {
            Some(endpoint) => Some(checked_endpoint("logsEndpoint", endpoint, plain)?),
            None => None,
        },
        device_id: number(&content, "deviceId")?,
        registered_at: number(&content, "registered_at")?,
        provisioning_key: text(&content, "apiKey")?.map(str::to_owned),
        authorities: authorities(&content, root_ca)?,
        uuid: uuid.clone(),
        device_key,
    };
    let has = |key| matches!(text(&content, key), Ok(Some(_)));
    if !has("uuid") || !has("deviceApiKey") {
        let mut write = |config: &mut Map<String, Value>| {
            config.insert("uuid".into(), identity.uuid.as_str().into());
            config.insert("deviceApiKey".into(), identity.device_key.as_str().into());
        };
        config.update(&mut write).map_err(IdentityError::Write)?;
    }
    Ok(DeviceIdentity {
        uuid,
        cloud: Some(identity),
    })
}

/// Returns a text; null and the empty text count as absent.
pub(crate) fn text<'a>(
    config: &'a Map<String, Value>,
    key: &str,
) -> Result<Option<&'a str>, IdentityError> {
    match config.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.trim()).filter(|text| !text.is_empty())),
        Some(_) => Err(IdentityError::value(key, "a text")),
    }
}

/// Returns a whole number, which may also be written as a text; devices with wrong clocks have stored fractions in
/// `registered_at`.
pub(crate) fn number(config: &Map<String, Value>, key: &str) -> Result<Option<u64>, IdentityError> {
    let read = match config.get(key) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) if text.is_empty() => return Ok(None),
        Some(Value::String(text)) => text.parse().ok(),
        Some(Value::Number(number)) => number.as_u64().or_else(|| {
            let number = number.as_f64().filter(|number| *number >= 0.0)?;
            // Saturates; a number beyond the range is wrong anyway.
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "checked above"
            )]
            Some(number as u64)
        }),
        Some(_) => None,
    };
    let number = read.ok_or_else(|| IdentityError::value(key, "a whole number"))?;
    Ok(Some(number))
}

fn checked_endpoint(key: &str, endpoint: &str, plain: PlainHttp) -> Result<String, IdentityError> {
    let wrong = |expected| IdentityError::value(key, expected);
    let url = Url::parse(endpoint).map_err(|_| wrong("a URL"))?;
    let bare = url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() || !bare {
        return Err(wrong("a URL such as `https://api.example.com`"));
    }
    if url.scheme() == "http" && !is_loopback(&url) {
        if plain == PlainHttp::Loopback {
            return Err(IdentityError::Plain {
                key: key.into(),
                endpoint: url.origin().ascii_serialization(),
            });
        }
        tracing::warn!(
            key,
            "`{key}` has no TLS, as `allow_plain` allows: anybody on the network path can read this device's key"
        );
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

/// Whether the URL is on this machine, by its address or by the name `localhost`.
fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else {
        return false;
    };
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.to_canonical().is_loopback())
}

/// Checks a value for a header, which a line break would end.
fn header_text<'a>(key: &str, value: &'a str) -> Result<&'a str, IdentityError> {
    if value.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(value);
    }
    Err(IdentityError::value(
        key,
        "a key (it has characters that keys do not have)",
    ))
}

/// Decodes base64 of PEM.
fn authorities(config: &Map<String, Value>, key: &str) -> Result<Option<Vec<u8>>, IdentityError> {
    let Some(encoded) = text(config, key)? else {
        return Ok(None);
    };
    let decoded = base64::engine::general_purpose::STANDARD.decode(encoded);
    let is_sound = |pem: &Vec<u8>| {
        reqwest::Certificate::from_pem_bundle(pem)
            .is_ok_and(|certificates| !certificates.is_empty())
    };
    let pem = decoded.ok().filter(is_sound);
    let pem = pem.ok_or_else(|| IdentityError::value(key, "certificates (PEM, in base64)"))?;
    Ok(Some(pem))
}

pub(crate) fn random_key() -> Result<String, IdentityError> {
    secure_fs::random_hex().map_err(|_| IdentityError::Random)
}

#[cfg(test)]
mod tests;
