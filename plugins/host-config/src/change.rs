//! Checked content of a PATCH (docs/spec/device.md#host-config-patch): invalid values are found here, before
//! anything is read or written.

use serde_json::{Map, Value};
use supervisor_sdk::lenient;
use supervisor_sdk::proxy_redirector::check::{is_address, is_credential, is_host_name, is_subnet};
use supervisor_sdk::proxy_redirector::{DnsRemote, ProxyKind};

/// The meaning of `dns: true` (docs/spec/device.md#host-config-patch).
const DEFAULT_DNS: (&str, u16) = ("8.8.8.8", 53);
/// The longest name that a Linux host can have, in bytes.
const HOST_NAME: usize = 64;
/// The longest value of `dns`, in bytes.
const DNS: usize = 255;
/// The most addresses in `noProxy`.
const NO_PROXY: usize = 4096;
/// How much of a refused value is shown, in characters.
const SHOWN: usize = 80;

/// A value for a setting that has a default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Setting<T> {
    To(T),
    /// Back to the default.
    Reset,
}

/// The change that a PATCH requests. Fields that it does not mention stay unchanged.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) host_name: Option<Setting<String>>,
    pub(crate) proxy: Option<Setting<ProxyFields>>,
    pub(crate) no_proxy: Option<Vec<String>>,
    pub(crate) dns: Option<Setting<DnsRemote>>,
    /// Whether update locks are overridden.
    pub(crate) force: bool,
    /// The places of unknown keys.
    pub(crate) ignored: Vec<String>,
}

/// The fields of a proxy that should change; at least one.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ProxyFields {
    pub(crate) kind: Option<ProxyKind>,
    pub(crate) address: Option<String>,
    pub(crate) port: Option<u16>,
    pub(crate) login: Option<Setting<String>>,
    pub(crate) password: Option<Setting<String>>,
}

impl Change {
    /// Reads the body.
    ///
    /// # Errors
    /// What is wrong with it, naming field and value.
    pub(crate) fn read(body: &Map<String, Value>) -> Result<Change, String> {
        let mut change = Change::default();
        for (key, value) in body {
            match key.as_str() {
                "network" => change.network(value)?,
                "force" => change.force |= truthy(value),
                other => change.ignore("", other),
            }
        }
        if body.contains_key("network") {
            Ok(change)
        } else {
            Err("`network` is missing: it contains `hostname`, `proxy` and `dns`".to_owned())
        }
    }

    fn network(&mut self, network: &Value) -> Result<(), String> {
        const FIELD: &str = "network";
        let Value::Object(fields) = network else {
            return Err(refused(FIELD, network, "an object"));
        };
        // If both places have a value, the one here wins, but both must be valid.
        let mut dns = None;
        for (key, value) in fields {
            match key.as_str() {
                "hostname" => self.host_name = Some(host_name(value)?),
                "proxy" => self.proxy(value)?,
                "dns" => dns = Some(self::dns("network.dns", value)?),
                "force" => self.force |= truthy(value),
                other => self.ignore(FIELD, other),
            }
        }
        if dns.is_some() {
            self.dns = dns;
        }
        Ok(())
    }

    fn proxy(&mut self, proxy: &Value) -> Result<(), String> {
        const FIELD: &str = "network.proxy";
        if is_empty(proxy) {
            self.proxy = Some(Setting::Reset);
            return Ok(());
        }
        let Value::Object(fields) = proxy else {
            return Err(refused(FIELD, proxy, "an object, or null for no proxy"));
        };
        let mut changed = ProxyFields::default();
        for (key, value) in fields {
            let field = format!("{FIELD}.{key}");
            match key.as_str() {
                "type" => changed.kind = Some(kind(&field, value)?),
                "ip" => changed.address = Some(address(&field, value)?),
                "port" => changed.port = Some(port(&field, value)?),
                "login" => changed.login = Some(credential(&field, value, true)?),
                "password" => changed.password = Some(credential(&field, value, false)?),
                "noProxy" => self.no_proxy = no_proxy(&field, value)?,
                "dns" => self.dns = Some(dns(&field, value)?),
                other => self.ignore(FIELD, other),
            }
        }
        if changed != ProxyFields::default() {
            self.proxy = Some(Setting::To(changed));
        }
        Ok(())
    }

    fn ignore(&mut self, parent: &str, key: &str) {
        let dot = if parent.is_empty() { "" } else { "." };
        let key: String = key.chars().take(SHOWN).collect();
        self.ignored.push(format!("{parent}{dot}{key}"));
    }

    /// Returns whether the necessary work depends on the present configuration of the proxy.
    pub(crate) fn needs_the_proxy(&self) -> bool {
        self.proxy.is_some() || self.dns.is_some()
    }
}

/// Returns whether a value resets a setting: null, false, an empty text and an empty object do.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

fn truthy(value: &Value) -> bool {
    lenient::truthy(value).unwrap_or(false)
}

fn host_name(value: &Value) -> Result<Setting<String>, String> {
    if is_empty(value) {
        return Ok(Setting::Reset);
    }
    match value.as_str() {
        Some(name) if is_host_name(name) && name.len() <= HOST_NAME => {
            Ok(Setting::To(name.to_owned()))
        }
        _ => Err(refused(
            "network.hostname",
            value,
            "a host name: letters, digits and hyphens, in labels of at most 63 characters separated by dots, 64 characters in all",
        )),
    }
}

fn kind(field: &str, value: &Value) -> Result<ProxyKind, String> {
    let kind = value.as_str().and_then(ProxyKind::from_name);
    kind.ok_or_else(|| {
        let names: Vec<_> = ProxyKind::ALL.map(ProxyKind::name).into();
        refused(field, value, &format!("one of {}", names.join(", ")))
    })
}

fn address(field: &str, value: &Value) -> Result<String, String> {
    let address = value.as_str().filter(|address| is_address(address));
    let expected = "an IPv4 address or a host name (IPv6 is not redirected)";
    Ok(address
        .ok_or_else(|| refused(field, value, expected))?
        .to_owned())
}

fn port(field: &str, value: &Value) -> Result<u16, String> {
    let number = match value {
        Value::Number(_) => lenient::int(value).unwrap_or(None),
        Value::String(digits) => digits_of(digits).map(i64::from),
        _ => None,
    };
    let port = number.and_then(|number| u16::try_from(number).ok());
    port.filter(|port| *port > 0)
        .ok_or_else(|| refused(field, value, "a number from 1 to 65535"))
}

/// Parses a port from a text of digits; `None` if it contains anything else, such as a sign.
fn digits_of(text: &str) -> Option<u16> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok())?
}

fn credential(field: &str, value: &Value, is_public: bool) -> Result<Setting<String>, String> {
    if is_empty(value) {
        return Ok(Setting::Reset);
    }
    let expected = "text of 1 to 255 bytes without control characters";
    match value.as_str() {
        Some(text) if is_credential(text) => Ok(Setting::To(text.to_owned())),
        _ if is_public => Err(refused(field, value, expected)),
        // A password must not appear in any answer or log, even an invalid one.
        _ => Err(format!(
            "`{field}` is invalid (value hidden): it must be {expected}"
        )),
    }
}

fn no_proxy(field: &str, value: &Value) -> Result<Option<Vec<String>>, String> {
    let entries = match value {
        Value::Null => return Ok(None),
        Value::Array(entries) => entries,
        _ => return Err(refused(field, value, "an array of addresses and subnets")),
    };
    if entries.len() > NO_PROXY {
        return Err(format!(
            "`{field}` has {} entries, more than the limit of {NO_PROXY}",
            entries.len()
        ));
    }
    let read = entries.iter().enumerate().map(|(at, entry)| {
        let address = entry.as_str().filter(|address| is_subnet(address));
        let expected = "an IP address or a subnet such as 10.0.0.0/8";
        let field = format!("{field}.{at}");
        Ok(address
            .ok_or_else(|| refused(&field, entry, expected))?
            .to_owned())
    });
    read.collect::<Result<_, _>>().map(Some)
}

fn dns(field: &str, value: &Value) -> Result<Setting<DnsRemote>, String> {
    if is_empty(value) {
        return Ok(Setting::Reset);
    }
    if *value == Value::Bool(true) {
        let (address, port) = DEFAULT_DNS;
        let address = address.to_owned();
        return Ok(Setting::To(DnsRemote { address, port }));
    }
    let remote = value.as_str().filter(|text| text.len() <= DNS);
    let remote = remote
        .and_then(|text| text.rsplit_once(':'))
        .and_then(|(address, port)| {
            let port = digits_of(port).filter(|port| *port > 0)?;
            let address = is_address(address).then(|| address.to_owned())?;
            Some(DnsRemote { address, port })
        });
    remote.map(Setting::To).ok_or_else(|| {
        let expected = "true, false or ADDRESS:PORT, an IPv4 address or a host name and a number from \
                        1 to 65535";
        refused(field, value, expected)
    })
}

fn refused(field: &str, value: &Value, expected: &str) -> String {
    let text = match value {
        Value::Array(_) => return format!("`{field}` is an array, but must be {expected}"),
        Value::Object(_) => return format!("`{field}` is an object, but must be {expected}"),
        // A text in its JSON form, so that it is one line, but without its quotation marks.
        single => single.to_string().trim_matches('"').to_owned(),
    };
    let end = text.char_indices().nth(SHOWN).map(|(end, _)| end);
    let text = match end {
        Some(end) => format!("{}…", &text[..end]),
        None => text,
    };
    format!("`{field}` is `{text}`, but must be {expected}")
}

#[cfg(test)]
mod tests;
