//! The kernel's own firewall, in networks of the tests' own: a device, and another machine next to it. They need root,
//! `ip` and `nft`, and do nothing without them.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use ::tests::NetworkNamespace;

use super::*;

const API: u16 = 48484;
const SERVICE_USERS: (u32, u32) = (1_900_000_000, 1_900_065_535);
/// For an answer that comes at once; packets that are accepted without an answer are not tested.
const PATIENCE: Duration = Duration::from_secs(20);

/// The device's answer to a packet for a port on which nobody listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Door {
    /// The packet got in: the device itself reports that nobody listens.
    Open,
    Shut,
}
use Door::{Open, Shut};

struct Network {
    device: NetworkNamespace,
    other: NetworkNamespace,
}

impl Network {
    /// Connects the two by one network, by one that looks like the engine's on the device, and by two that look like
    /// created by the engine, of which one is that of the API.
    fn make() -> Option<Network> {
        let device = NetworkNamespace::make(&["nft"])?;
        let other = NetworkNamespace::make(&[])?;
        for (interface, network, number) in [
            ("lan", "77.0", 77),
            ("docker0", "78.0", 78),
            ("br-0123456789ab", "79.0", 79),
            ("br-ba9876543210", "114.104", 80),
        ] {
            let peer = other.name();
            let beside = format!("to-{number}");
            device.run(&format!(
                "ip link add {interface} type veth peer name {beside} netns {peer}"
            ));
            for (machine, name, host) in [(&device, interface, 1), (&other, &*beside, 2)] {
                machine.run(&format!("ip address add 10.{network}.{host}/25 dev {name}"));
                machine.run(&format!(
                    "ip address add fd00:{number}::{host}/64 dev {name} nodad"
                ));
                machine.run(&format!("ip link set {name} up"));
            }
        }
        // No limit on the number of refusals.
        let script = "echo 0 > /proc/sys/net/ipv4/icmp_ratelimit; echo 0 > /proc/sys/net/ipv6/icmp/ratelimit";
        let done = device.command("sh").args(["-c", script]).status();
        assert!(done.unwrap().success(), "{script}");
        Some(Network { device, other })
    }

    /// Runs `work` with the device's firewall.
    fn on_device<R: Send + 'static>(
        &self,
        work: impl AsyncFnOnce(Firewall) -> R + Send + 'static,
    ) -> R {
        self.device.inside(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.unwrap().block_on(work(Firewall::from_nft("nft")))
        })
    }

    fn put(&self, rules: FirewallRules) {
        self.on_device(async move |firewall| firewall.put(&rules).await)
            .unwrap();
    }

    fn remove(&self) {
        self.on_device(async |firewall| firewall.remove().await)
            .unwrap();
    }

    /// Returns all tables.
    fn listed(&self) -> String {
        let listed = self
            .device
            .command("nft")
            .args(["list", "ruleset"])
            .output()
            .unwrap();
        assert!(listed.status.success(), "{listed:?}");
        String::from_utf8(listed.stdout).unwrap()
    }

    #[track_caller]
    fn check(&self, doors: &[(&'static str, &'static str, Door)]) {
        for (protocol, address, expected) in doors.iter().copied() {
            let address: SocketAddr = address.parse().unwrap();
            let found = self.other.inside(move || match protocol {
                "tcp" => knock_tcp(address),
                _ => knock_udp(address),
            });
            assert_eq!(found, expected, "{protocol} {address}\n{}", self.listed());
        }
    }
}

fn door(error: &io::Error) -> Door {
    match error.kind() {
        ErrorKind::ConnectionRefused => Open,
        // The errors with which the two versions of the protocol report that it is forbidden.
        ErrorKind::HostUnreachable | ErrorKind::PermissionDenied => Shut,
        _ => panic!("{error:?}"),
    }
}

fn knock_tcp(address: SocketAddr) -> Door {
    match TcpStream::connect_timeout(&address, PATIENCE) {
        Ok(_) => Open,
        Err(error) => door(&error),
    }
}

fn knock_udp(address: SocketAddr) -> Door {
    let any = if address.is_ipv4() {
        "0.0.0.0:0"
    } else {
        "[::]:0"
    };
    let socket = UdpSocket::bind(any).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.connect(address).unwrap();
    socket.send(b"?").unwrap();
    door(&socket.recv(&mut [0; 8]).unwrap_err())
}

fn rules() -> FirewallRules {
    FirewallRules {
        api_port: API,
        api_is_for_all: false,
        network: "supervisor0".to_owned(),
        tcp: [22222, 2375].into(),
        published: [(Protocol::Tcp, 8080), (Protocol::Udp, 9090)].into(),
        service_users: SERVICE_USERS,
    }
}

#[test]
fn others_reach_what_the_table_lets_in_and_nothing_else() {
    let Some(network) = Network::make() else {
        return;
    };
    network.check(&[
        ("tcp", "10.77.0.1:80", Open),
        ("tcp", "10.77.0.1:48484", Open),
    ]);
    network.put(rules());
    network.check(&[
        ("tcp", "10.77.0.1:22222", Open),
        ("tcp", "10.77.0.1:2375", Open),
        ("tcp", "10.77.0.1:8080", Open),
        ("udp", "10.77.0.1:8080", Shut),
        ("udp", "10.77.0.1:9090", Open),
        ("udp", "10.77.0.1:5353", Open),
        ("tcp", "10.77.0.1:80", Shut),
        ("udp", "10.77.0.1:53", Shut),
        ("tcp", "10.77.0.1:48484", Shut),
        ("tcp", "[fd00:77::1]:22222", Open),
        ("tcp", "[fd00:77::1]:80", Shut),
        ("tcp", "[fd00:77::1]:48484", Shut),
        // What the engine's containers may reach in addition.
        ("tcp", "10.78.0.1:48484", Open),
        ("tcp", "[fd00:78::1]:48484", Open),
        ("udp", "10.78.0.1:53", Open),
        ("tcp", "10.78.0.1:80", Shut),
        // The API's network, whatever its bridge is called, and no other network of an engine.
        ("tcp", "10.114.104.1:48484", Open),
        ("udp", "10.114.104.1:53", Open),
        ("tcp", "10.114.104.1:80", Shut),
        ("tcp", "10.79.0.1:48484", Shut),
        ("tcp", "[fd00:79::1]:48484", Shut),
    ]);
    // Each side of a conversation that the device begins, and the device itself.
    let listening = network
        .other
        .inside(|| TcpListener::bind("10.77.0.2:0").unwrap());
    let address = listening.local_addr().unwrap();
    network.device.inside(move || {
        TcpStream::connect_timeout(&address, PATIENCE).unwrap();
        let own = TcpListener::bind("10.77.0.1:0").unwrap();
        TcpStream::connect_timeout(&own.local_addr().unwrap(), PATIENCE).unwrap();
    });
    network.put(FirewallRules {
        api_is_for_all: true,
        ..rules()
    });
    network.check(&[
        ("tcp", "10.77.0.1:48484", Open),
        ("tcp", "10.77.0.1:80", Shut),
    ]);
    network.remove();
    network.check(&[
        ("tcp", "10.77.0.1:80", Open),
        ("tcp", "10.77.0.1:48484", Open),
    ]);
}

#[test]
fn users_of_the_host_reach_no_port_of_a_service_on_its_own_address() {
    let Some(network) = Network::make() else {
        return;
    };
    // A service's own address, and one that a resolver of the host has.
    let listening = network.device.inside(|| {
        ["127.9.9.9:0", "127.0.0.53:0"].map(|address| TcpListener::bind(address).unwrap())
    });
    let [service, resolver] = listening.each_ref().map(|at| at.local_addr().unwrap());
    let knock = |user: u32, at: SocketAddr| {
        let door = format!("exec 3<>/dev/tcp/{}/{}", at.ip(), at.port());
        let mut knock = network.device.command("setpriv");
        knock.args([
            "--reuid",
            &user.to_string(),
            "--clear-groups",
            "bash",
            "-c",
            &door,
        ]);
        if knock.output().unwrap().status.success() {
            Open
        } else {
            Shut
        }
    };
    let (nobody, a_service) = (65534, SERVICE_USERS.0 + 7);
    assert_eq!(knock(nobody, service), Open, "there is no firewall yet");
    network.put(rules());
    for (user, at, expected) in [
        (nobody, service, Shut),
        (1000, service, Shut),
        (a_service, service, Open),
        (SERVICE_USERS.1, service, Open),
        (SERVICE_USERS.1 + 1, service, Shut),
        (0, service, Open),
        (nobody, resolver, Open),
    ] {
        assert_eq!(
            knock(user, at),
            expected,
            "user {user}, {at}\n{}",
            network.listed()
        );
    }
    network.remove();
    assert_eq!(knock(nobody, service), Open);
}

#[test]
fn an_owner_may_close_every_port() {
    let Some(network) = Network::make() else {
        return;
    };
    network.put(FirewallRules {
        tcp: BTreeSet::new(),
        published: BTreeSet::new(),
        ..rules()
    });
    network.check(&[
        ("tcp", "10.77.0.1:22222", Shut),
        ("tcp", "10.77.0.1:8080", Shut),
    ]);
}

#[test]
fn the_table_is_ours_alone_and_the_same_however_often_it_is_put() {
    let Some(network) = Network::make() else {
        return;
    };
    for line in [
        "nft add table inet acme",
        "nft add chain inet acme input { type filter hook input priority 10 ; policy accept ; }",
        "nft add rule inet acme input tcp dport 7 drop",
    ] {
        network.device.run(line);
    }
    let before = network.listed();
    assert!(
        !network
            .on_device(async |firewall| firewall.is_there().await)
            .unwrap()
    );
    network.remove();
    assert_eq!(network.listed(), before);
    network.put(rules());
    let once = network.listed();
    assert!(once.contains("table inet supervisor {"), "{once}");
    network.put(rules());
    assert_eq!(network.listed(), once);
    assert!(
        network
            .on_device(async |firewall| firewall.is_there().await)
            .unwrap()
    );
    // The removal of a table by others is noticed.
    network.device.run("nft delete table inet supervisor");
    assert!(
        !network
            .on_device(async |firewall| firewall.is_there().await)
            .unwrap()
    );
    network.put(rules());
    network.remove();
    assert_eq!(network.listed(), before);
}

#[tokio::test]
async fn a_host_without_nft_says_what_to_install() {
    let firewall = Firewall::from_nft("/nowhere/nft");
    for outcome in [
        firewall.put(&rules()).await,
        firewall.remove().await,
        firewall.is_there().await.map(drop),
    ] {
        let error = outcome.unwrap_err();
        assert!(matches!(error, FirewallError::NotInstalled), "{error}");
        assert!(error.to_string().contains("`nftables`"), "{error}");
    }
    Firewall::rehearsal().put(&rules()).await.unwrap();
}

/// Ctrl-C in a terminal ends every process of the group; a change of the firewall is not left half done.
#[tokio::test]
async fn nft_is_not_in_the_group_of_the_supervisor() {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/print-group");
    let failed = Firewall::from_nft(program).put(&rules()).await;
    let message = failed.unwrap_err().to_string();
    let (_, fields) = message.split_once("group ").unwrap();
    let group: i32 = fields.split(' ').nth(2).unwrap().parse().unwrap();
    let own = rustix::process::getpgrp().as_raw_pid();
    assert_ne!(group, own, "{message}");
}

#[test]
fn errors_of_nft_are_reported_in_one_short_line() {
    let output = |stderr: &str| Output {
        status: std::os::unix::process::ExitStatusExt::from_raw(256),
        stdout: Vec::new(),
        stderr: stderr.as_bytes().to_vec(),
    };
    let long = "Error:\n  no such\tthing ".repeat(100);
    let message = refused(&output(&long)).to_string();
    assert!(
        message.len() < COMPLAINT + 64 && !message.contains('\n'),
        "{message}"
    );
    assert!(refused(&output("")).to_string().contains("exit status"));
}
