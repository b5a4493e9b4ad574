//! The kernel's own answers, in networks of the tests' own. They need root and `ip`, and do nothing without them.

use ::tests::NetworkNamespace;

use super::*;

/// Creates a machine with the networks of a container engine, an interface that leads out, and a bridge that does.
fn machine() -> Option<NetworkNamespace> {
    let network = NetworkNamespace::make(&[])?;
    for line in [
        "ip link add uplink type veth peer name far",
        "ip link set far up",
        "ip address add 203.0.113.5/24 dev uplink",
        "ip link set uplink up",
        "ip route replace default via 203.0.113.1 dev uplink",
        // Bridges as Docker creates them, one with a user-defined name.
        "ip link add docker0 type bridge",
        "ip address add 172.17.0.1/16 dev docker0",
        "ip address add fd00:17::1/64 dev docker0 nodad",
        "ip link set docker0 up",
        "ip link add pump type bridge",
        "ip address add 172.18.0.1/16 dev pump",
        "ip link set pump up",
        "ip link add veth0 type veth peer name veth1",
        "ip link set veth0 master pump",
        "ip link set veth0 up",
        "ip link set veth1 up",
        // A network behind another container.
        "ip route add 10.9.0.0/16 via 172.18.0.2",
        "ip rule add to 10.10.0.0/16 lookup 77",
        "ip route add 10.10.0.0/16 via 172.18.0.2 table 77",
        "ip route add unreachable 10.11.0.0/16",
    ] {
        network.run(line);
    }
    Some(network)
}

fn check(network: &NetworkNamespace, expected: &[(&'static str, Way)]) {
    let expected = expected.to_vec();
    network.inside(move || {
        let routes = Routes::open().unwrap();
        for (address, way) in expected {
            let to = SocketAddr::new(address.parse().unwrap(), 80);
            assert_eq!(routes.way_to(to).unwrap(), way, "{address}");
        }
    });
}

#[test]
fn bridges_that_lead_only_to_containers_are_distinguished_from_the_way_out() {
    let Some(network) = machine() else { return };
    check(
        &network,
        &[
            ("9.9.9.9", Way::Outward),
            ("203.0.113.9", Way::Outward),
            ("203.0.113.5", Way::Host),
            ("127.0.0.1", Way::Host),
            ("203.0.113.255", Way::Many),
            ("224.0.0.251", Way::Many),
            ("172.17.0.2", Way::Containers),
            ("172.17.0.1", Way::Host),
            ("172.18.0.2", Way::Containers),
            ("172.18.255.255", Way::Many),
            ("::ffff:172.18.0.2", Way::Containers),
            ("fd00:17::2", Way::Containers),
            ("fd00:17::1", Way::Host),
            ("10.9.0.1", Way::Containers),
            ("10.10.0.1", Way::Containers),
            ("10.11.0.1", Way::Nowhere),
        ],
    );
}

#[test]
fn a_bridge_that_the_machine_itself_goes_out_by_is_no_network_of_containers() {
    let Some(network) = machine() else { return };
    // A machine whose network cable is in a bridge.
    network.run("ip route replace default via 172.18.0.254 dev pump");
    check(
        &network,
        &[
            ("9.9.9.9", Way::Outward),
            ("172.18.0.2", Way::Outward),
            ("172.17.0.2", Way::Containers),
        ],
    );
}

#[test]
fn a_bridge_with_a_port_that_leads_out_is_a_network_outside() {
    let Some(network) = machine() else { return };
    network.run("ip link add lan type ifb");
    network.run("ip link set lan master pump");
    check(
        &network,
        &[
            ("172.18.0.2", Way::Outward),
            ("172.17.0.2", Way::Containers),
        ],
    );
}

#[test]
fn a_network_that_comes_later_counts_at_once() {
    let Some(network) = machine() else { return };
    let name = network.name().to_owned();
    network.inside(move || {
        let routes = Routes::open().unwrap();
        let to: SocketAddr = "172.30.0.2:80".parse().unwrap();
        assert_eq!(routes.way_to(to).unwrap(), Way::Outward);
        let run = |line: &str| {
            let words = line.split_whitespace();
            let done = std::process::Command::new("ip")
                .args(["-n", &name])
                .args(words)
                .status();
            assert!(done.unwrap().success(), "{line}");
        };
        run("link add br-late type bridge");
        run("address add 172.30.0.1/16 dev br-late");
        run("link set br-late up");
        assert_eq!(routes.way_to(to).unwrap(), Way::Containers);
        run("link del br-late");
        assert_eq!(routes.way_to(to).unwrap(), Way::Outward);
    });
}

#[test]
fn answers_that_are_cut_or_are_somebody_elses_are_not_believed() {
    let question = messages::route_to(7, ELSEWHERE_V4, 0);
    assert_eq!(question.len() % 4, 0);
    for length in 1..question.len() {
        let replies = messages::replies(&question[..length], 7);
        assert!(replies.iter().all(Result::is_err), "{length}");
    }
    assert!(messages::replies(&messages::all_links(8), 7).is_empty());
}
