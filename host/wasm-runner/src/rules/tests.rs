//! The rules as tables: who may reach which address, and where that leads.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ::tests::NetworkNamespace;
use tempfile::TempDir;
use wasm_service::record::MEMBERS;

use super::*;

const OWN: &str = "127.10.0.1";
const FRIEND: &str = "127.10.0.2";

/// A service `OWN` that listens on TCP and UDP port 80 (the real port is 40080), in one network with `FRIEND`, which
/// listens on TCP port 5432 (real 41000) and UDP port 53 (real 41053).
struct Device {
    folder: TempDir,
    network: OwnNetwork,
}

impl Device {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let device = Device {
            network: OwnNetwork {
                address: OWN.parse().unwrap(),
                tables: vec![folder.path().join(MEMBERS)],
                outward: true,
                api: None,
                extra_hosts: BTreeMap::new(),
            },
            folder,
        };
        device.member("friend", FRIEND, &["db", "Database"], Status::Running);
        let table = PortTable {
            tcp: BTreeMap::from([(5432, 41000)]),
            udp: BTreeMap::from([(53, 41053)]),
        };
        record::write(&device.container("friend").join(PORTS), &table).unwrap();
        device
    }

    fn container(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn member(&self, name: &str, address: &str, names: &[&str], status: Status) {
        let folder = self.container(name);
        std::fs::create_dir(&folder).unwrap();
        let state = State {
            status,
            ..State::created()
        };
        record::write(&folder.join(STATE), &state).unwrap();
        let path = self.folder.path().join(MEMBERS);
        let mut members: Members = record::read(&path).unwrap().unwrap_or_default();
        members.0.push(Member {
            address: address.parse().unwrap(),
            folder,
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        });
        record::write(&path, &members).unwrap();
    }

    fn with_api(mut self) -> Self {
        self.network.api = Some(Api {
            address: "127.0.0.1:48484".parse().unwrap(),
            host: "10.114.104.1".into(),
        });
        self
    }

    fn internal(mut self) -> Self {
        self.network.outward = false;
        self
    }

    fn extra_host(mut self, name: &str, host: ExtraHost) -> Self {
        self.network.extra_hosts.insert(name.into(), host);
        self
    }

    fn rules(&self) -> Rules {
        let own = self.folder.path().join("own");
        std::fs::create_dir_all(&own).unwrap();
        let ports = Arc::new(PortMap::new(&own));
        ports.bind(Protocol::Tcp, 80, 40080);
        ports.bind(Protocol::Udp, 80, 40080);
        let routes = Routes::open().expect("the kernel's routes");
        Rules::new(self.network.clone(), ports, Some(routes))
    }
}

/// Returns where a TCP connection to `address` really goes, if it is allowed.
fn connected(rules: &Rules, address: &str) -> Option<String> {
    let real = rules.destination(address.parse().unwrap(), Protocol::Tcp)?;
    let allowed = rules.allows(real, SocketAddrUse::TcpConnect);
    allowed.then(|| real.to_string())
}

fn check(rules: &Rules, table: &[(&str, Option<&str>)]) {
    for (address, expected) in table {
        assert_eq!(connected(rules, address).as_deref(), *expected, "{address}");
    }
}

#[test]
fn a_service_reaches_itself_its_friends_and_other_machines() {
    let device = Device::new();
    check(
        &device.rules(),
        &[
            // itself, under every name of the loopback address
            ("127.0.0.1:80", Some("127.10.0.1:40080")),
            ("[::1]:80", Some("127.10.0.1:40080")),
            ("[::ffff:127.0.0.1]:80", Some("127.10.0.1:40080")),
            ("127.10.0.1:80", Some("127.10.0.1:40080")),
            // services that share a network, on ports that they listen on
            ("127.10.0.2:5432", Some("127.10.0.2:41000")),
            ("[::ffff:127.10.0.2]:5432", Some("127.10.0.2:41000")),
            // other machines
            ("93.184.216.34:443", Some("93.184.216.34:443")),
            ("192.168.77.1:53", Some("192.168.77.1:53")),
            ("[2606:2800:220::1]:443", Some("[2606:2800:220::1]:443")),
        ],
    );
}

#[test]
fn the_host_and_strangers_are_out_of_reach() {
    let device = Device::new();
    let stranger = device.container("stranger");
    std::fs::create_dir(&stranger).unwrap();
    let table = PortTable {
        tcp: BTreeMap::from([(5432, 42000)]),
        ..PortTable::default()
    };
    record::write(&stranger.join(PORTS), &table).unwrap();
    let rules = device.rules();
    check(
        &rules,
        &[
            // the host's loopback address means the service itself, and it does not listen there: programs of the host
            // that listen on all addresses would answer
            ("127.0.0.1:22", None),
            ("127.0.0.1:48484", None),
            ("[::1]:22", None),
            ("127.10.0.1:22", None),
            ("127.10.0.2:22", None),
            // nobody may use the real ports
            ("127.10.0.2:41000", None),
            // other loopback addresses
            ("127.10.0.3:5432", None),
            ("127.10.0.3:42000", None),
            ("127.0.0.2:80", None),
            ("127.0.0.53:53", None),
            // not a machine
            ("0.0.0.0:80", None),
            ("224.0.0.1:80", None),
            ("[ff02::1]:80", None),
        ],
    );
    for address in [
        "127.0.0.1:22",
        "127.10.0.3:42000",
        "127.10.0.2:22",
        "[::1]:22",
    ] {
        let address = address.parse().unwrap();
        for usage in [SocketAddrUse::TcpConnect, SocketAddrUse::UdpSend] {
            assert!(!rules.allows(address, usage), "{address} {usage:?}");
        }
    }
}

#[test]
fn the_hosts_own_addresses_need_host_gateway() {
    let Some(host) = address_towards_others() else {
        println!("SKIPPED: this machine has no way to other machines");
        return;
    };
    let address = SocketAddr::new(host, 22).to_string();
    check(&Device::new().rules(), &[(&address, None)]);
    let device = Device::new().extra_host("host.internal", ExtraHost::HostGateway);
    let rules = device.rules();
    check(
        &rules,
        &[(&address, Some(&address)), ("127.0.0.1:22", None)],
    );
    assert_eq!(rules.resolve("host.internal"), Resolution::Address(host));
}

#[test]
fn the_api_is_reached_by_its_address_in_the_environment_where_the_label_is_set() {
    let table = |real| {
        [
            ("10.114.104.1:48484", real),
            ("127.0.0.1:48484", real),
            ("[::1]:48484", real),
            ("127.0.0.1:48485", None),
        ]
    };
    let api = Some("127.0.0.1:48484");
    check(&Device::new().with_api().rules(), &table(api));
    check(&Device::new().internal().with_api().rules(), &table(api));
    // Without the label the address belongs to another machine, or to none.
    let without = Device::new().internal();
    check(&without.rules(), &table(None));
}

#[test]
fn an_internal_network_leads_nowhere_else() {
    let device = Device::new().internal();
    let rules = device.rules();
    check(
        &rules,
        &[
            ("127.10.0.2:5432", Some("127.10.0.2:41000")),
            ("93.184.216.34:443", None),
            ("[2606:2800:220::1]:443", None),
        ],
    );
    assert_eq!(
        rules.resolve("db"),
        Resolution::Address(FRIEND.parse().unwrap())
    );
    assert_eq!(rules.resolve("example.org"), Resolution::Unknown);
}

#[test]
fn names_are_those_of_running_services_and_then_the_systems() {
    let device = Device::new().extra_host(
        "printer",
        ExtraHost::Address("192.168.77.9".parse().unwrap()),
    );
    device.member("ended", "127.10.0.7", &["worker"], Status::Exited);
    device.member("old", "127.10.0.8", &["web"], Status::Running);
    device.member("new", "127.10.0.9", &["web"], Status::Created);
    let rules = device.rules();
    let address = |text: &str| Resolution::Address(text.parse().unwrap());
    for (name, expected) in [
        ("db", address(FRIEND)),
        ("DB", address(FRIEND)),
        ("database", address(FRIEND)),
        ("db.", address(FRIEND)),
        ("localhost", address(OWN)),
        ("printer", address("192.168.77.9")),
        ("web", address("127.10.0.8")),
        ("worker", Resolution::AskSystem),
        ("example.org", Resolution::AskSystem),
        ("127.0.0.1", Resolution::AskSystem),
    ] {
        assert_eq!(rules.resolve(name), expected, "{name}");
    }
}

#[test]
fn only_our_own_address_can_be_listened_on() {
    let device = Device::new();
    let rules = device.rules();
    for (address, local) in [
        ("0.0.0.0", true),
        ("::", true),
        ("127.0.0.1", true),
        ("::1", true),
        (OWN, true),
        (FRIEND, false),
        ("192.168.77.1", false),
        ("::ffff:0.0.0.0", true),
    ] {
        assert_eq!(rules.is_local(address.parse().unwrap()), local, "{address}");
    }
    for (address, usage, allowed) in [
        ("127.10.0.1:0", SocketAddrUse::TcpBind, true),
        ("127.10.0.1:0", SocketAddrUse::UdpBind, true),
        ("0.0.0.0:0", SocketAddrUse::UdpBind, true),
        ("0.0.0.0:80", SocketAddrUse::TcpBind, false),
        ("127.10.0.2:0", SocketAddrUse::TcpBind, false),
        ("127.10.0.1:40080", SocketAddrUse::TcpListen, true),
        // Listening without binding would open a port on all addresses of the host.
        ("0.0.0.0:0", SocketAddrUse::TcpListen, false),
        ("[::]:0", SocketAddrUse::TcpListen, false),
    ] {
        let address: SocketAddr = address.parse().unwrap();
        assert_eq!(rules.allows(address, usage), allowed, "{address} {usage:?}");
    }
}

#[test]
fn datagrams_may_be_answered_and_those_of_strangers_are_ignored() {
    let device = Device::new();
    let rules = device.rules();
    let may = |address: &str, usage| rules.allows(address.parse().unwrap(), usage);
    // Another service on this machine sends us a request.
    assert!(!may("127.0.0.1:5000", SocketAddrUse::UdpSend));
    assert!(may("127.0.0.1:5000", SocketAddrUse::UdpReceive));
    assert!(may("127.0.0.1:5000", SocketAddrUse::UdpSend));
    assert!(!may("127.0.0.1:5001", SocketAddrUse::UdpSend));
    let goes_to = |address: &str, protocol| rules.destination(address.parse().unwrap(), protocol);
    let asker = "127.0.0.1:5000".parse().ok();
    assert_eq!(goes_to("127.0.0.1:5000", Protocol::Udp), asker);
    assert_eq!(goes_to("127.0.0.1:5000", Protocol::Tcp), None);
    assert_eq!(goes_to("127.0.0.1:5001", Protocol::Udp), None);
    // Another machine may send to us once we have sent to it.
    assert!(!may("9.9.9.9:53", SocketAddrUse::UdpReceive));
    assert!(may("9.9.9.9:53", SocketAddrUse::UdpSend));
    assert!(may("9.9.9.9:53", SocketAddrUse::UdpReceive));
}

#[test]
fn an_address_is_shown_as_requested() {
    let device = Device::new();
    let rules = device.rules();
    let address: SocketAddr = "127.10.0.2:5432".parse().unwrap();
    let real = rules.destination(address, Protocol::Tcp).unwrap();
    assert_ne!(real, address);
    assert_eq!(rules.known_as(real), address);
    let other: SocketAddr = "127.10.0.2:50000".parse().unwrap();
    assert_eq!(rules.known_as(other), other);
}

#[test]
fn damaged_tables_name_nobody() {
    let device = Device::new();
    std::fs::write(device.folder.path().join(MEMBERS), "{").unwrap();
    let rules = device.rules();
    assert_eq!(rules.resolve("db"), Resolution::AskSystem);
    check(&rules, &[("127.10.0.2:5432", None)]);
}

/// Runs the check in a network where every address leads out, except for one bridge.
fn inside(nonlocal_bind: bool, check: impl FnOnce(&Device) + Send + 'static) {
    let Some(network) = NetworkNamespace::make(&[]) else {
        return;
    };
    for line in [
        "ip link add pump type bridge",
        "ip address add 172.18.0.1/16 dev pump",
        "ip address add fd00:18::1/64 dev pump nodad",
        "ip link set pump up",
    ] {
        network.run(line);
    }
    if nonlocal_bind {
        let script = "echo 1 > /proc/sys/net/ipv4/ip_nonlocal_bind";
        let done = network.command("sh").args(["-c", script]).status();
        assert!(done.unwrap().success(), "{script}");
    }
    network.inside(move || check(&Device::new()));
}

const NOT_THEIRS: [(&str, Option<&str>); 7] = [
    ("172.18.0.2:5432", None),
    ("[::ffff:172.18.0.2]:5432", None),
    ("[fd00:18::2]:5432", None),
    ("172.18.255.255:5432", None),
    // The host, by the address that containers know, and by its own.
    ("172.18.0.1:22", None),
    ("[fd00:18::1]:22", None),
    ("192.0.2.1:22", None),
];

#[test]
fn containers_of_other_networks_are_out_of_reach() {
    for nonlocal_bind in [false, true] {
        inside(nonlocal_bind, |device| {
            let rules = device.rules();
            check(&rules, &NOT_THEIRS);
            check(&rules, &[("93.184.216.34:443", Some("93.184.216.34:443"))]);
            for (address, _) in NOT_THEIRS {
                let address: SocketAddr = address.parse().unwrap();
                assert!(!rules.allows(address, SocketAddrUse::UdpSend), "{address}");
            }
        });
    }
}

#[test]
fn not_even_a_service_that_may_reach_the_host_or_names_them_reaches_them() {
    inside(false, |_| {
        let device = Device::new()
            .extra_host("host", ExtraHost::HostGateway)
            .extra_host("db2", ExtraHost::Address("172.18.0.2".parse().unwrap()));
        let address = "172.18.0.1:22";
        check(
            &device.rules(),
            &[("172.18.0.2:5432", None), (address, Some(address))],
        );
    });
}

#[test]
fn without_known_routes_only_services_are_reachable() {
    let device = Device::new().extra_host("host", ExtraHost::HostGateway);
    let mut rules = device.rules();
    rules.routes = None;
    check(
        &rules,
        &[
            ("93.184.216.34:443", None),
            ("192.168.77.1:53", None),
            ("127.10.0.2:5432", Some("127.10.0.2:41000")),
            ("127.10.0.1:80", Some("127.10.0.1:40080")),
        ],
    );
}

#[test]
fn only_services_whose_release_names_it_reach_the_metadata_service() {
    let metadata = "169.254.169.254:80";
    let mapped = "[::ffff:169.254.169.254]:80";
    let none = [
        (metadata, None),
        (mapped, None),
        ("[fd00:ec2::254]:80", None),
        ("168.63.129.16:80", None),
        ("192.0.0.192:80", None),
        ("[fd20:ce::254]:80", None),
        ("[fe80::a9fe:a9fe]:80", None),
    ];
    check(&Device::new().rules(), &none);
    let device = Device::new().extra_host(
        "metadata",
        ExtraHost::Address("169.254.169.254".parse().unwrap()),
    );
    let expected = [(metadata, Some(metadata)), (mapped, Some(metadata))];
    check(&device.rules(), &expected);
}
