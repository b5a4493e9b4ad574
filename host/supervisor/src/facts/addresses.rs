//! Addresses of the host: those of its interfaces, without those that only serve containers,
//! tunnels and the host itself (docs/spec/device.md#host-facts).

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::path::Path;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::SockaddrStorage;

/// The addresses at which the host is reached.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Addresses {
    /// IPv4 and global IPv6, in the order of the interfaces.
    pub(crate) ip: Vec<String>,
    /// In upper case, without duplicates.
    pub(crate) mac: Vec<String>,
}

impl Addresses {
    /// Reads the addresses from the kernel; missing ones are left out. `own_network` is the bridge
    /// of services that use the API.
    pub(crate) fn read(own_network: &str) -> Self {
        Addresses {
            ip: ip_addresses(own_network),
            mac: mac_addresses(Path::new("/sys/class/net"), own_network),
        }
    }
}

fn ip_addresses(own_network: &str) -> Vec<String> {
    let Ok(interfaces) = getifaddrs() else {
        return Vec::new();
    };
    let mut addresses = Vec::new();
    for interface in interfaces {
        let up = interface.flags.contains(InterfaceFlags::IFF_UP);
        if !up || !counts(&interface.interface_name, own_network) {
            continue;
        }
        let Some(address) = interface.address else {
            continue;
        };
        let ip: IpAddr = if let Some(v4) = address.as_sockaddr_in() {
            v4.ip().into()
        } else if let Some(v6) = address.as_sockaddr_in6() {
            v6.ip().into()
        } else {
            continue;
        };
        let text = ip.to_string();
        if is_outward(ip) && !addresses.contains(&text) {
            addresses.push(text);
        }
    }
    addresses
}

/// The addresses of this host and of the containers on it.
#[derive(Debug, Clone, Default)]
pub(crate) struct OwnAddresses {
    interfaces: Vec<IpAddr>,
    /// Address and mask of each bridge of an engine.
    bridges: Vec<(IpAddr, IpAddr)>,
}

impl OwnAddresses {
    /// Reads the addresses from the kernel.
    ///
    /// # Errors
    /// If the kernel does not return them.
    pub(crate) fn read(own_network: &str) -> io::Result<Self> {
        let mut own = OwnAddresses::default();
        for interface in getifaddrs()? {
            let ip = |address: Option<SockaddrStorage>| -> Option<IpAddr> {
                let address = address?;
                let v4 = address.as_sockaddr_in().map(|v4| v4.ip().into());
                v4.or_else(|| Some(address.as_sockaddr_in6()?.ip().into()))
            };
            let Some(address) = ip(interface.address) else {
                continue;
            };
            own.interfaces.push(address);
            let name = &interface.interface_name;
            if let Some(mask) = ip(interface.netmask)
                && (name == own_network || is_engine_bridge(name) || is_numbered(name, "docker"))
            {
                own.bridges.push((address, mask));
            }
        }
        Ok(own)
    }

    #[cfg(test)]
    pub(crate) fn new(interfaces: Vec<IpAddr>, bridges: Vec<(IpAddr, IpAddr)>) -> Self {
        OwnAddresses {
            interfaces,
            bridges,
        }
    }

    /// Returns whether a packet to this address stays on this host.
    pub(crate) fn contain(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let mut bridges = self.bridges.iter();
        self.interfaces.contains(&address)
            || bridges.any(|(bridge, mask)| is_same_network(*bridge, *mask, address))
    }
}

fn is_same_network(one: IpAddr, mask: IpAddr, other: IpAddr) -> bool {
    match (one, mask, other) {
        (IpAddr::V4(one), IpAddr::V4(mask), IpAddr::V4(other)) => {
            one.to_bits() & mask.to_bits() == other.to_bits() & mask.to_bits()
        }
        (IpAddr::V6(one), IpAddr::V6(mask), IpAddr::V6(other)) => {
            one.to_bits() & mask.to_bits() == other.to_bits() & mask.to_bits()
        }
        _ => false,
    }
}

/// Returns the interfaces of this host that have `gateway`, the address at which services in containers reach the API,
/// and are not the bridge of the API's network: packets from containers to that address do not reach us, or our answers
/// do not reach them. Empty if all is well.
pub(crate) fn rivals_of_gateway(gateway: IpAddr, own_network: &str) -> Vec<String> {
    let Ok(interfaces) = getifaddrs() else {
        return Vec::new();
    };
    let holders = interfaces.filter_map(|interface| {
        let ip: IpAddr = interface.address?.as_sockaddr_in()?.ip().into();
        (ip == gateway).then_some(interface.interface_name)
    });
    rivals(holders.collect(), own_network)
}

/// Returns, of the interfaces with one address, those that an engine did not create for the API's network. An engine
/// chooses the bridge's name freely, so a single bridge of an engine counts as that network's; with several it is
/// unclear which one it is.
fn rivals(mut holders: Vec<String>, own_network: &str) -> Vec<String> {
    holders.sort();
    holders.dedup();
    let bridges = |name: &String| name == own_network || is_engine_bridge(name);
    if holders.iter().filter(|name| bridges(name)).count() <= 1 {
        holders.retain(|name| !bridges(name));
    }
    holders
}

fn is_engine_bridge(name: &str) -> bool {
    name.strip_prefix("br-")
        .is_some_and(|id| id.len() == 12 && id.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Returns whether a name is this word with a number, or without one.
fn is_numbered(name: &str, word: &str) -> bool {
    name.strip_prefix(word)
        .is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_outward(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => !ip.is_loopback() && !ip.is_unspecified(),
        // Link-local addresses mean nothing without their interface.
        IpAddr::V6(ip) => {
            !ip.is_loopback() && ip != Ipv6Addr::UNSPECIFIED && !ip.is_unicast_link_local()
        }
    }
}

fn mac_addresses(class_net: &Path, own_network: &str) -> Vec<String> {
    /// `ARPHRD_ETHER`.
    const ETHERNET: &str = "1";
    let Ok(interfaces) = fs::read_dir(class_net) else {
        return Vec::new();
    };
    let mut by_interface: Vec<(String, String)> = interfaces
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name().into_string().ok()?;
            let read = |file: &str| {
                let text = fs::read_to_string(entry.path().join(file)).ok()?;
                Some(text.trim().to_owned())
            };
            let owned = entry.path().join("master").exists();
            if owned || !counts(&name, own_network) || read("type")? != ETHERNET {
                return None;
            }
            let mac = read("address")?.to_uppercase();
            (mac != "00:00:00:00:00:00" && !mac.is_empty()).then_some((name, mac))
        })
        .collect();
    by_interface.sort();
    let mut addresses: Vec<String> = Vec::new();
    for (_, mac) in by_interface {
        if !addresses.contains(&mac) {
            addresses.push(mac);
        }
    }
    addresses
}

/// Returns whether an interface belongs to the device rather than to its engine, a tunnel or the
/// supervisor.
fn counts(name: &str, own_network: &str) -> bool {
    let service = ["vpn", "dns", "redsocks"]
        .iter()
        .any(|word| name == *word || name.ends_with(&format!("-{word}")));
    !(name == "lo"
        || name == own_network
        || is_engine_bridge(name)
        || service
        || is_numbered(name, "docker")
        || is_numbered(name, "tun")
        || name.starts_with("veth"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_of_engines_tunnels_and_the_supervisor_do_not_count() {
        for name in [
            "eth0", "enp3s0", "wlan0", "br-lan", "br0", "docking", "usb0",
        ] {
            assert!(counts(name, "supervisor0"), "{name}");
        }
        for name in [
            "lo",
            "docker0",
            "br-0123456789ab",
            "tun0",
            "supervisor0",
            "some-vpn",
            "some-dns",
            "redsocks",
            "veth12ab",
        ] {
            assert!(!counts(name, "supervisor0"), "{name}");
        }
    }

    #[test]
    fn addresses_of_this_host_are_known_from_its_interfaces() {
        let own = OwnAddresses::read("supervisor0").unwrap();
        assert!(own.contain("127.0.0.1".parse().unwrap()));
        assert!(own.contain("::ffff:127.0.0.1".parse().unwrap()));
        assert!(!own.contain("192.0.2.1".parse().unwrap()));
        let ip = |text: &str| text.parse().unwrap();
        let own = OwnAddresses::new(
            vec![ip("10.0.0.5")],
            vec![
                (ip("172.17.0.1"), ip("255.255.0.0")),
                (ip("fd00::1"), ip("ffff:ffff:ffff:ffff::")),
            ],
        );
        for (address, expected) in [
            ("10.0.0.5", true),
            ("10.0.0.6", false),
            ("172.17.255.1", true),
            ("172.18.0.1", false),
            ("fd00::7:1", true),
            ("fd00:0:0:1::1", false),
        ] {
            assert_eq!(own.contain(ip(address)), expected, "{address}");
        }
    }

    #[test]
    fn only_one_bridge_of_an_engine_may_have_the_gateways_address() {
        for (holders, expected) in [
            (&[][..], &[][..]),
            (&["br-0123456789ab"], &[]),
            (&["supervisor0"], &[]),
            (&["eth0"], &["eth0"]),
            (
                &["eth0.5", "br-0123456789ab", "br-lan"],
                &["br-lan", "eth0.5"],
            ),
            (
                &["br-ba9876543210", "br-0123456789ab"],
                &["br-0123456789ab", "br-ba9876543210"],
            ),
        ] {
            let holders: Vec<String> = holders.iter().map(ToString::to_string).collect();
            assert_eq!(
                rivals(holders.clone(), "supervisor0"),
                expected,
                "{holders:?}"
            );
        }
        let loopback = rivals_of_gateway("127.0.0.1".parse().unwrap(), "supervisor0");
        assert_eq!(loopback, ["lo"]);
    }

    #[test]
    fn hardware_addresses_are_those_of_ethernet_interfaces_that_nothing_owns() {
        let class_net = tempfile::tempdir().unwrap();
        let interface = |name: &str, kind: &str, mac: &str| {
            let folder = class_net.path().join(name);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("type"), format!("{kind}\n")).unwrap();
            fs::write(folder.join("address"), format!("{mac}\n")).unwrap();
            folder
        };
        interface("wlan0", "1", "aa:bb:cc:00:00:02");
        interface("eth0", "1", "aa:bb:cc:00:00:01");
        interface("eth0.5", "1", "aa:bb:cc:00:00:01");
        interface("lo", "772", "00:00:00:00:00:00");
        interface("can0", "280", "11:11:11:11:11:11");
        interface("docker0", "1", "02:42:00:00:00:01");
        interface("dummy0", "1", "00:00:00:00:00:00");
        let owned = interface("eth1", "1", "aa:bb:cc:00:00:03");
        fs::create_dir(owned.join("master")).unwrap();
        assert_eq!(
            mac_addresses(class_net.path(), "supervisor0"),
            ["AA:BB:CC:00:00:01", "AA:BB:CC:00:00:02"]
        );
    }

    #[test]
    fn addresses_that_lead_nowhere_else_are_left_out() {
        for (address, outward) in [
            ("192.168.1.2", true),
            ("127.0.0.2", false),
            ("2001:db8::1", true),
            ("fd00::1", true),
            ("fe80::1", false),
            ("::1", false),
        ] {
            assert_eq!(is_outward(address.parse().unwrap()), outward, "{address}");
        }
    }
}
