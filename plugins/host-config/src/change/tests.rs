use proptest::prelude::*;
use serde_json::json;

use super::*;

fn read(body: Value) -> Result<Change, String> {
    let Value::Object(body) = body else {
        panic!("a body is an object")
    };
    Change::read(&body)
}

/// Returns the change that a value of `network.proxy` results in.
fn proxy(fields: Value) -> Result<Change, String> {
    read(json!({ "network": { "proxy": fields } }))
}

fn empties() -> [Value; 4] {
    [json!(null), json!(false), json!(""), json!({})]
}

#[test]
fn the_empty_values_reset_each_of_the_three() {
    for empty in empties() {
        let change = read(json!({ "network": { "hostname": empty } })).unwrap();
        assert_eq!(change.host_name, Some(Setting::Reset), "{empty}");
        let change = read(json!({ "network": { "proxy": empty } })).unwrap();
        assert_eq!(change.proxy, Some(Setting::Reset), "{empty}");
        for body in [
            json!({ "network": { "dns": empty } }),
            json!({ "network": { "proxy": { "dns": empty } } }),
        ] {
            assert_eq!(read(body).unwrap().dns, Some(Setting::Reset), "{empty}");
        }
        let change = proxy(json!({ "login": empty, "password": empty })).unwrap();
        let reset = ProxyFields {
            login: Some(Setting::Reset),
            password: Some(Setting::Reset),
            ..ProxyFields::default()
        };
        assert_eq!(change.proxy, Some(Setting::To(reset)), "{empty}");
    }
    assert_eq!(read(json!({ "network": {} })), Ok(Change::default()));
}

#[test]
fn a_proxy_is_read_field_by_field() {
    let change = proxy(json!({
        "type": "http-connect", "ip": "proxy.example", "port": "8080", "login": "bob",
        "password": "}\"\\", "noProxy": ["10.0.0.0/8", "fd00::1"], "dns": "9.9.9.9:5353"
    }));
    let change = change.unwrap();
    let fields = ProxyFields {
        kind: Some(ProxyKind::HttpConnect),
        address: Some("proxy.example".to_owned()),
        port: Some(8080),
        login: Some(Setting::To("bob".to_owned())),
        password: Some(Setting::To("}\"\\".to_owned())),
    };
    assert_eq!(change.proxy, Some(Setting::To(fields)));
    assert_eq!(change.no_proxy.unwrap(), ["10.0.0.0/8", "fd00::1"]);
    let Some(Setting::To(dns)) = change.dns else {
        panic!("no name server")
    };
    assert_eq!(dns.to_string(), "9.9.9.9:5353");
    for port in [json!(1), json!("65535"), json!(1080.0), json!("01080")] {
        assert!(proxy(json!({ "port": port })).is_ok(), "{port}");
    }
}

#[test]
fn the_name_server_outside_the_proxy_wins_and_both_must_be_valid() {
    for body in [
        json!({ "network": { "dns": "1.1.1.1:53", "proxy": { "dns": "2.2.2.2:53" } } }),
        json!({ "network": { "proxy": { "dns": "2.2.2.2:53" }, "dns": "1.1.1.1:53" } }),
    ] {
        let Some(Setting::To(dns)) = read(body).unwrap().dns else {
            panic!("no name server")
        };
        assert_eq!(dns.address, "1.1.1.1");
    }
    let both = json!({ "network": { "dns": true, "proxy": { "dns": "nowhere" } } });
    assert!(
        read(both)
            .unwrap_err()
            .starts_with("`network.proxy.dns` is `nowhere`")
    );
    let Some(Setting::To(dns)) = read(json!({ "network": { "dns": true } })).unwrap().dns else {
        panic!("no name server")
    };
    assert_eq!(dns.to_string(), "8.8.8.8:53");
}

#[test]
fn impossible_values_are_refused_with_field_and_value() {
    let long = "a".repeat(64);
    let network: [(Value, &str); 33] = [
        (json!({ "hostname": 7 }), "`network.hostname` is `7`"),
        (json!({ "hostname": true }), "`network.hostname` is `true`"),
        (json!({ "hostname": [] }), "`network.hostname` is an array"),
        (json!({ "hostname": "a b" }), "`network.hostname` is `a b`"),
        (json!({ "hostname": "-a" }), "`network.hostname` is `-a`"),
        (
            json!({ "hostname": "a..b" }),
            "`network.hostname` is `a..b`",
        ),
        (
            json!({ "hostname": "a\nb" }),
            "`network.hostname` is `a\\nb`",
        ),
        (json!({ "hostname": long }), "`network.hostname` is `aaa"),
        (json!({ "proxy": 1 }), "`network.proxy` is `1`"),
        (json!({ "proxy": true }), "`network.proxy` is `true`"),
        (json!({ "proxy": "socks5" }), "`network.proxy` is `socks5`"),
        (json!({ "proxy": [] }), "`network.proxy` is an array"),
        (
            json!({ "proxy": { "type": "vpn" } }),
            "`network.proxy.type` is `vpn`",
        ),
        (
            json!({ "proxy": { "type": null } }),
            "`network.proxy.type` is `null`",
        ),
        (
            json!({ "proxy": { "type": "SOCKS5" } }),
            "`network.proxy.type` is `SOCKS5`",
        ),
        (json!({ "proxy": { "ip": 1 } }), "`network.proxy.ip` is `1`"),
        (
            json!({ "proxy": { "ip": "::1" } }),
            "`network.proxy.ip` is `::1`",
        ),
        (
            json!({ "proxy": { "ip": "256.1.1.1" } }),
            "`network.proxy.ip` is `256.1.1.1`",
        ),
        (
            json!({ "proxy": { "ip": "a;} b {" } }),
            "`network.proxy.ip` is `a;} b {`",
        ),
        (
            json!({ "proxy": { "port": 0 } }),
            "`network.proxy.port` is `0`",
        ),
        (
            json!({ "proxy": { "port": 65536 } }),
            "`network.proxy.port` is `65536`",
        ),
        (
            json!({ "proxy": { "port": 1.5 } }),
            "`network.proxy.port` is `1.5`",
        ),
        (
            json!({ "proxy": { "port": "+1" } }),
            "`network.proxy.port` is `+1`",
        ),
        (
            json!({ "proxy": { "port": "1 " } }),
            "`network.proxy.port` is `1 `",
        ),
        (
            json!({ "proxy": { "port": true } }),
            "`network.proxy.port` is `true`",
        ),
        (
            json!({ "proxy": { "login": 7 } }),
            "`network.proxy.login` is `7`",
        ),
        (
            json!({ "proxy": { "login": "a\u{0}" } }),
            "`network.proxy.login` is `a\\u0000`",
        ),
        (
            json!({ "proxy": { "noProxy": "10.0.0.1" } }),
            "`network.proxy.noProxy` is `10.0.0.1`",
        ),
        (
            json!({ "proxy": { "noProxy": ["10.0.0.1", "x"] } }),
            "`network.proxy.noProxy.1` is `x`",
        ),
        (
            json!({ "proxy": { "noProxy": [1] } }),
            "`network.proxy.noProxy.0` is `1`",
        ),
        (json!({ "dns": 53 }), "`network.dns` is `53`"),
        (
            json!({ "dns": "8.8.8.8:0" }),
            "`network.dns` is `8.8.8.8:0`",
        ),
        (json!({ "dns": ":53" }), "`network.dns` is `:53`"),
    ];
    for (network, expected) in network {
        let refused = read(json!({ "network": network })).unwrap_err();
        assert!(refused.starts_with(expected), "{network}: {refused}");
    }
    for dns in [
        "8.8.8.8",
        "8.8.8.8:",
        "8.8.8.8:65536",
        "8.8.8.8:x",
        "::1:53",
        "8.8.8.8:+53",
    ] {
        assert!(read(json!({ "network": { "dns": dns } })).is_err(), "{dns}");
    }
    for body in [json!({}), json!({ "hostname": "a" })] {
        assert!(read(body).unwrap_err().starts_with("`network` is missing"));
    }
    for network in [json!(null), json!([]), json!("x"), json!(true)] {
        let refused = read(json!({ "network": network })).unwrap_err();
        assert!(refused.starts_with("`network` is "), "{refused}");
    }
}

#[test]
fn a_wrong_password_is_not_shown_and_a_long_value_not_whole() {
    let password = format!("secret\n{}", "x".repeat(300));
    let refused = proxy(json!({ "password": password })).unwrap_err();
    assert!(
        refused.starts_with("`network.proxy.password` is"),
        "{refused}"
    );
    assert!(!refused.contains("secret"), "{refused}");
    let refused = proxy(json!({ "ip": "ü".repeat(100_000) })).unwrap_err();
    assert!(refused.len() < 400, "{}", refused.len());
}

#[test]
fn unknown_keys_and_those_that_nobody_may_set_are_dropped_with_a_warning() {
    let change = read(json!({
        "extra": 1,
        "network": { "ntp": {}, "proxy": { "local_ip": "1.2.3.4", "local_port": 1, "user": "x" } }
    }));
    let change = change.unwrap();
    assert_eq!(
        change.ignored,
        [
            "extra",
            "network.ntp",
            "network.proxy.local_ip",
            "network.proxy.local_port",
            "network.proxy.user"
        ]
    );
    let ignored = Vec::new();
    assert_eq!(
        Change { ignored, ..change },
        Change::default(),
        "and nothing is reset"
    );
    let change = proxy(json!({ "noProxy": null })).unwrap();
    assert_eq!(change, Change::default());
}

#[test]
fn force_is_read_in_both_places_and_never_an_error() {
    for (value, expected) in [
        (json!(true), true),
        (json!("on"), true),
        (json!(1), true),
        (json!("yes"), false),
        (json!({}), false),
        (json!(null), false),
    ] {
        let change = read(json!({ "force": value, "network": {} })).unwrap();
        assert_eq!(change.force, expected, "{value}");
        let change = read(json!({ "network": { "force": value } })).unwrap();
        assert_eq!(change.force, expected, "{value}");
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    let key = prop_oneof![
        any::<String>(),
        proptest::sample::select(vec![
            "network", "proxy", "hostname", "dns", "type", "ip", "port", "login", "noProxy"
        ])
        .prop_map(str::to_owned),
    ];
    leaf.prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::vec((key.clone(), inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_body_breaks_it(network in any_json(), proxy in any_json()) {
        let _ = read(json!({ "network": network }));
        let _ = read(json!({ "network": { "proxy": proxy } }));
    }
}
