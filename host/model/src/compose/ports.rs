//! Published ports: `[ip:][host[-host]:]container[-container][/tcp|udp]`, numbers, and the long form.

use std::net::IpAddr;

use serde_json::Value;

use super::reader::{Reader, scalar};
use crate::{PortMapping, Protocol};

const EXPECTED: &str =
    "a port `[ip:][host[-host]:]container[-container][/tcp|udp]` with ranges of equal length";

/// Returns all published ports, ranges written out, sorted. A port without a host port is published
/// at the same number; one with an empty host port (`ip::80`) at a port that the engine chooses.
pub(super) fn ports(reader: &mut Reader<'_>) -> Vec<PortMapping> {
    let mut ports = Vec::new();
    for item in reader.items("ports") {
        let parsed = match item {
            Value::Object(fields) => reader.within("ports", fields, long_form),
            other => scalar(other).as_deref().and_then(parse),
        };
        let Some(range) = parsed else {
            reader.problem("ports", item, EXPECTED);
            continue;
        };
        if !reader.findings.take_ports(range.count()) {
            reader.problem("ports", item, "fewer ports in all services together");
            break;
        }
        range.write_out(&mut ports);
    }
    ports.sort_unstable();
    ports.dedup();
    ports
}

/// One entry of `ports`: both ranges have the same length.
#[derive(Debug, PartialEq, Eq)]
struct PortRange {
    host_ip: String,
    /// `None` lets the engine choose.
    host: Option<(u16, u16)>,
    container: (u16, u16),
    protocol: Protocol,
}

impl PortRange {
    fn count(&self) -> usize {
        usize::from(self.container.1 - self.container.0) + 1
    }

    fn write_out(&self, ports: &mut Vec<PortMapping>) {
        for (offset, container_port) in (self.container.0..=self.container.1).enumerate() {
            ports.push(PortMapping {
                host_ip: self.host_ip.clone(),
                // Both ranges are of equal length, so the sum stays within the host's.
                host_port: self
                    .host
                    .and_then(|(first, _)| first.checked_add(u16::try_from(offset).ok()?)),
                container_port,
                protocol: self.protocol,
            });
        }
    }
}

fn parse(text: &str) -> Option<PortRange> {
    let (numbers, protocol) = match text.split_once('/') {
        None => (text, Protocol::Tcp),
        Some((numbers, protocol)) => (numbers, parse_protocol(protocol)?),
    };
    // From the right: the address itself may contain colons.
    let (before, container) = match numbers.rsplit_once(':') {
        None => (None, numbers),
        Some((before, container)) => (Some(before), container),
    };
    let container = parse_range(container)?;
    let (host_ip, host) = match before {
        None => ("", Some(container)),
        Some(before) => {
            let (ip, host) = before.rsplit_once(':').unwrap_or(("", before));
            let host = match host {
                "" => None,
                host => Some(host_range(host, container)?),
            };
            (ip, host)
        }
    };
    checked(host_ip, host, container, protocol)
}

/// Reads a range of the host, which must be as long as the container's; one port cannot stand for
/// several.
fn host_range(text: &str, container: (u16, u16)) -> Option<(u16, u16)> {
    let host = parse_range(text)?;
    (host.1 - host.0 == container.1 - container.0).then_some(host)
}

/// Reads `{ target, published, protocol, host_ip }`.
fn long_form(reader: &mut Reader<'_>) -> Option<PortRange> {
    let container = reader.text("target").as_deref().and_then(parse_range);
    let published = reader.text("published");
    let protocol = reader.text("protocol");
    let host_ip = reader.text("host_ip").unwrap_or_default();
    // `ingress` and `host` are the same on one device.
    for ignored in ["mode", "name", "app_protocol"] {
        reader.take(ignored);
    }
    let container = container?;
    let host = match published.as_deref() {
        None => container,
        Some(text) => host_range(text, container)?,
    };
    let protocol = protocol
        .as_deref()
        .map_or(Some(Protocol::Tcp), parse_protocol)?;
    checked(&host_ip, Some(host), container, protocol)
}

fn checked(
    host_ip: &str,
    host: Option<(u16, u16)>,
    container: (u16, u16),
    protocol: Protocol,
) -> Option<PortRange> {
    let bare = host_ip
        .strip_prefix('[')
        .and_then(|ip| ip.strip_suffix(']'))
        .unwrap_or(host_ip);
    let host_ip = match bare {
        "" => String::new(),
        ip => ip.parse::<IpAddr>().ok()?.to_string(),
    };
    Some(PortRange {
        host_ip,
        host,
        container,
        protocol,
    })
}

fn parse_protocol(text: &str) -> Option<Protocol> {
    match text {
        "tcp" => Some(Protocol::Tcp),
        "udp" => Some(Protocol::Udp),
        _ => None,
    }
}

fn parse_range(text: &str) -> Option<(u16, u16)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (parse_port(first)?, parse_port(last)?);
    (first <= last).then_some((first, last))
}

fn parse_port(text: &str) -> Option<u16> {
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|port| digits && *port > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Option<String> {
        let range = parse(text)?;
        let host = match range.host {
            None => "any".to_owned(),
            Some((first, last)) => format!("{first}-{last}"),
        };
        let (first, last) = range.container;
        Some(format!(
            "{}|{host}|{first}-{last}|{:?}",
            range.host_ip, range.protocol
        ))
    }

    #[test]
    fn short_forms_are_read() {
        for (text, expected) in [
            ("80", "|80-80|80-80|Tcp"),
            ("80/udp", "|80-80|80-80|Udp"),
            ("8080:80", "|8080-8080|80-80|Tcp"),
            ("8000-8002:80-82/tcp", "|8000-8002|80-82|Tcp"),
            ("80-82", "|80-82|80-82|Tcp"),
            ("127.0.0.1:8080:80", "127.0.0.1|8080-8080|80-80|Tcp"),
            ("127.0.0.1::80", "127.0.0.1|any|80-80|Tcp"),
            ("[::1]:8080:80", "::1|8080-8080|80-80|Tcp"),
            ("::1:8080:80", "::1|8080-8080|80-80|Tcp"),
            (":80", "|any|80-80|Tcp"),
            ("65535", "|65535-65535|65535-65535|Tcp"),
        ] {
            assert_eq!(shown(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn bad_syntax_is_refused() {
        for text in [
            "",
            "x",
            "0",
            "65536",
            "+80",
            "80/sctp",
            "80/",
            "80:",
            "80-",
            "82-80",
            "8000-8001:80",
            "8000:80-82",
            "8000-8002:80-81",
            "host:80:80",
            "1.2.3:80:80",
            "[::1:80:80",
            "80:80:80:80",
            " 80",
            "8080:80:",
        ] {
            assert_eq!(shown(text), None, "{text:?}");
        }
    }
}
