//! Reads and writes the redirection in a configuration file.

use supervisor_sdk::proxy_redirector::check::{is_address, is_credential};
use supervisor_sdk::proxy_redirector::{DnsRemote, Proxy, ProxyKind, Redirection};

use crate::conf::{Block, Conf};

/// The general settings, unless the file has others (docs/spec/device.md#proxy-files).
const BASE: [(&str, &str); 5] = [
    ("log_debug", "off"),
    ("log_info", "on"),
    ("log", "stderr"),
    ("daemon", "off"),
    ("redirector", "iptables"),
];

/// Values that redsocks treats as its own signs, even in quotes, if they stand alone.
const SIGNS: [&str; 6] = ["{", "}", "=", ";", "//", "/*"];

/// Returns the redirection that the file describes.
///
/// # Errors
/// What is missing or wrong, if it describes none.
pub(crate) fn read(conf: &Conf) -> Result<Redirection, String> {
    let block = conf
        .block("redsocks")
        .ok_or("it has no complete block `redsocks`")?;
    let field = |key: &str| block.get(key).ok_or(format!("`{key}` is missing"));
    let kind = field("type")?;
    let kind = ProxyKind::from_name(kind).ok_or("`type` is not a known type")?;
    let address = field("ip")?;
    if !is_address(address) {
        return Err("`ip` is neither an IPv4 address nor a host name".to_owned());
    }
    let credential = |key: &str| {
        let value = block.get(key).filter(|value| !value.is_empty());
        value.map(str::to_owned)
    };
    Ok(Redirection {
        proxy: Proxy {
            kind,
            address: address.to_owned(),
            port: port(field("port")?).ok_or("`port` is not 1 to 65535")?,
            login: credential("login"),
            password: credential("password"),
        },
        dns: conf.block("dnsu2t").and_then(dns),
    })
}

fn dns(block: &Block) -> Option<DnsRemote> {
    let address = block.get("remote_ip").filter(|ip| is_address(ip))?;
    Some(DnsRemote {
        address: address.to_owned(),
        port: port(block.get("remote_port")?)?,
    })
}

fn port(text: &str) -> Option<u16> {
    text.parse().ok().filter(|port| *port > 0)
}

/// Checks that all values can be written.
///
/// # Errors
/// The value that cannot.
pub(crate) fn check(target: &Redirection) -> Result<(), String> {
    let Redirection { proxy, dns } = target;
    let dns = dns.as_ref();
    for (what, address) in [
        ("proxy", Some(&proxy.address)),
        ("name server", dns.map(|dns| &dns.address)),
    ] {
        if let Some(address) = address.filter(|address| !is_address(address)) {
            return Err(format!(
                "the {what} `{address}` is neither an IPv4 address nor a host name"
            ));
        }
    }
    if proxy.port == 0 || dns.is_some_and(|dns| dns.port == 0) {
        return Err("the port is 0, but must be 1 to 65535".to_owned());
    }
    for (what, value) in [("login", &proxy.login), ("password", &proxy.password)] {
        if let Some(sign) = SIGNS.iter().find(|sign| value.as_deref() == Some(**sign)) {
            return Err(format!(
                "the {what} cannot be `{sign}` alone: redsocks would read it as its own sign"
            ));
        }
        if value.as_ref().is_some_and(|value| !is_credential(value)) {
            return Err(format!(
                "the {what} must have 1 to 255 bytes and no control characters"
            ));
        }
    }
    Ok(())
}

/// Makes the file describe `target`. Other blocks and fields stay unchanged.
pub(crate) fn write(conf: &mut Conf, target: &Redirection) {
    let base = conf.block_or_new("base", 0);
    for (key, value) in BASE {
        base.set_default(key, value);
    }

    let Redirection { proxy, dns } = target;
    let block = conf.block_or_new("redsocks", 1);
    block.set("type", proxy.kind.name());
    block.set("ip", &proxy.address);
    block.set("port", &proxy.port.to_string());
    for (key, value) in [("login", &proxy.login), ("password", &proxy.password)] {
        match value {
            Some(value) => block.set(key, value),
            None => block.remove(key),
        }
    }
    block.set("local_ip", "127.0.0.1");
    block.set("local_port", "12345");

    match dns {
        Some(remote) => {
            let block = conf.block_or_new("dnsu2t", 2);
            block.set("remote_ip", &remote.address);
            block.set("remote_port", &remote.port.to_string());
            block.set("local_ip", "127.0.0.1");
            block.set("local_port", "53");
        }
        None => conf.remove_block("dnsu2t"),
    }
}

#[cfg(test)]
mod tests;
