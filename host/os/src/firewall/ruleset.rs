//! The table in the form that `nft --json` accepts (libnftables-json(5)).

use model::Protocol;
use model::compose::SUPERVISOR_SUBNET;
use serde_json::{Value, json};

use super::FirewallRules;

/// One table for addresses of both versions. Its name is ours; all other tables belong to others.
pub(super) const FAMILY: &str = "inet";
pub(super) const TABLE: &str = "supervisor";
const CHAIN: &str = "input";
const OUTPUT: &str = "output";

/// The loopback addresses that services have; those with a zero after the 127 are the system's own.
const SERVICES: [&str; 2] = ["127.1.0.0", "127.254.255.255"];

/// Interfaces of container engines that have generated names.
const BRIDGES: &str = "br-*";
/// The engine's own interface, and the VPN's (docs/spec/device.md#firewall).
const ENGINE: &str = "docker0";
const VPN: &str = "tun0";

/// Returns commands that make the table match `rules`, whatever it was before. The kernel carries out all of them at
/// once or none.
pub(super) fn put(rules: &FirewallRules) -> Value {
    let mut commands = removal();
    commands.push(json!({ "add": { "table": table() } }));
    for (chain, rules) in [(CHAIN, rules_of(rules)), (OUTPUT, rules_of_output(rules))] {
        // Each chain has the name of the kernel hook that it is attached to.
        commands.push(json!({ "add": { "chain": {
            "family": FAMILY, "table": TABLE, "name": chain,
            "type": "filter", "hook": chain, "prio": 0, "policy": "accept",
        } } }));
        commands.extend(rules.into_iter().map(|(expressions, comment)| {
            json!({ "add": { "rule": {
                "family": FAMILY, "table": TABLE, "chain": chain, "expr": expressions, "comment": comment,
            } } })
        }));
    }
    json!({ "nftables": commands })
}

/// Returns commands that remove our table.
pub(super) fn remove() -> Value {
    json!({ "nftables": removal() })
}

/// Adding a table that exists does nothing, and removing one that does not exist fails: so this adds it first.
fn removal() -> Vec<Value> {
    vec![
        json!({ "add": { "table": table() } }),
        json!({ "delete": { "table": table() } }),
    ]
}

fn table() -> Value {
    json!({ "family": FAMILY, "name": TABLE })
}

/// Returns the rules of incoming packets in their order: the first match decides.
fn rules_of(rules: &FirewallRules) -> Vec<(Vec<Value>, &'static str)> {
    let mut chain = Vec::new();
    let mut add = |mut conditions: Vec<Value>, verdict, comment| {
        conditions.push(verdict);
        chain.push((conditions, comment));
    };
    let state = json!({ "ct": { "key": "state" } });
    let is_known = is_in(state, &["established", "related"]);
    let comment = "connections that this device opened";
    add(vec![is_known], accept(), comment);
    add(vec![on_interface(&["lo"])], accept(), "this device itself");
    let protocol = json!({ "meta": { "key": "l4proto" } });
    let is_control = is_one_of(protocol, &["icmp", "ipv6-icmp", "igmp"]);
    let comment = "ping, neighbours and multicast groups";
    add(vec![is_control], accept(), comment);

    let port = |protocol: &str, port: u16| is(port_of(protocol, "dport"), json!(port));
    let from = |protocol: &str, port: u16| is(port_of(protocol, "sport"), json!(port));
    let to = |protocol: &str, ports: &[u16]| is_one_of(port_of(protocol, "dport"), ports);
    // The API comes before other rules that have its port.
    let api = port("tcp", rules.api_port);
    if rules.api_is_for_all {
        add(vec![api], accept(), "the API, in local mode");
    } else {
        let own = on_interface(&[ENGINE, VPN, &rules.network]);
        let comment = "the API, from services and the VPN";
        add(vec![own, api.clone()], accept(), comment);
        // The bridge of the API's network, which also has a generated name. A container of another bridge may send from
        // such an address, and receives no answer there.
        let bridge = vec![on_interface(&[BRIDGES]), from_supervisor_network()];
        add([bridge, vec![api.clone()]].concat(), accept(), comment);
        add(vec![api], refuse(), "the API, from elsewhere");
    }

    let tcp: Vec<u16> = rules.tcp.iter().copied().collect();
    if !tcp.is_empty() {
        let comment = "ports that the configuration opens";
        add(vec![to("tcp", &tcp)], accept(), comment);
    }
    for (name, protocol) in [("tcp", Protocol::Tcp), ("udp", Protocol::Udp)] {
        let published = rules.published.iter();
        let published = published.filter(|(of, _)| *of == protocol);
        let ports: Vec<u16> = published.map(|(_, port)| *port).collect();
        if !ports.is_empty() {
            let comment = "ports that services publish";
            add(vec![to(name, &ports)], accept(), comment);
        }
    }
    add(vec![to("udp", &[5353])], accept(), "mDNS");
    add(vec![from("udp", 67), to("udp", &[68])], accept(), "DHCP");
    let dhcp_6 = vec![from("udp", 547), to("udp", &[546])];
    add(dhcp_6, accept(), "DHCPv6");
    for interface in [ENGINE, &rules.network, BRIDGES] {
        for protocol in ["udp", "tcp"] {
            let names = vec![on_interface(&[interface]), to(protocol, &[53])];
            add(names, accept(), "names, for services");
        }
    }
    add(Vec::new(), refuse(), "everything else");
    chain
}

/// Returns the rules for packets that users of this host send to ports that services have not published.
fn rules_of_output(rules: &FirewallRules) -> Vec<(Vec<Value>, &'static str)> {
    let (first, last) = rules.service_users;
    let to = json!({ "payload": { "protocol": "ip", "field": "daddr" } });
    let user = json!({ "meta": { "key": "skuid" } });
    let may = json!({ "set": [0, { "range": [first, last] }] });
    vec![(
        vec![
            is(json!({ "meta": { "key": "oifname" } }), json!("lo")),
            is(to, json!({ "range": SERVICES })),
            is_in(json!({ "ct": { "key": "state" } }), &["new"]),
            json!({ "match": { "op": "!=", "left": user, "right": may } }),
            refuse(),
        ],
        "addresses of services, to users of this host",
    )]
}

fn accept() -> Value {
    json!({ "accept": null })
}

/// Answers with a refusal at once, so the sender does not wait.
fn refuse() -> Value {
    json!({ "reject": { "type": "icmpx", "expr": "admin-prohibited" } })
}

fn port_of(protocol: &str, field: &str) -> Value {
    json!({ "payload": { "protocol": protocol, "field": field } })
}

fn on_interface(names: &[&str]) -> Value {
    let name = json!({ "meta": { "key": "iifname" } });
    match names {
        // A name with a star matches many interfaces here, but not in a set.
        [one] => is(name, json!(one)),
        _ => is_one_of(name, names),
    }
}

/// Matches an address of the network in which services reach the API.
fn from_supervisor_network() -> Value {
    let whole = (SUPERVISOR_SUBNET, "32");
    let (address, length) = SUPERVISOR_SUBNET.split_once('/').unwrap_or(whole);
    let length: u8 = length.parse().unwrap_or(32);
    let from = json!({ "payload": { "protocol": "ip", "field": "saddr" } });
    is(
        from,
        json!({ "prefix": { "addr": address, "len": length } }),
    )
}

fn is(left: Value, right: Value) -> Value {
    json!({ "match": { "op": "==", "left": left, "right": right } })
}

fn is_one_of<T: serde::Serialize>(left: Value, right: &[T]) -> Value {
    is(left, json!({ "set": right }))
}

/// Matches if at least one of these flags is set.
fn is_in(left: Value, right: &[&str]) -> Value {
    json!({ "match": { "op": "in", "left": left, "right": right } })
}
