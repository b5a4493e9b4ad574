use serde_json::{Value, json};
use supervisor_sdk::proxy_redirector::ProxyKind;

use super::*;

fn redirected() -> Redirection {
    Redirection {
        proxy: Proxy {
            kind: ProxyKind::Socks5,
            address: "10.0.0.1".to_owned(),
            port: 1080,
            login: Some("bob".to_owned()),
            password: Some("secret".to_owned()),
        },
        dns: Some(DnsRemote {
            address: "8.8.8.8".to_owned(),
            port: 53,
        }),
    }
}

/// Returns the work that results from the value of `network` in this state.
fn work(network: Value, state: &State) -> Result<Work, String> {
    let Value::Object(body) = json!({ "network": network }) else {
        panic!("an object")
    };
    Work::new(&Change::read(&body)?, state, || "0123456".to_owned())
}

#[test]
fn fields_that_are_left_out_stay_as_they_are() {
    let state = State::Redirected(redirected());
    let work = work(json!({ "proxy": { "port": 1081, "login": null } }), &state).unwrap();
    let mut expected = redirected();
    expected.proxy.port = 1081;
    expected.proxy.login = None;
    assert_eq!(work.redirection, Some(Some(expected)));
    assert_eq!((work.host_name, work.no_proxy), (None, None));
}

#[test]
fn a_new_proxy_needs_type_address_and_port() {
    for state in [State::Direct, State::Unusable("cut short".to_owned())] {
        for (fields, missing) in [
            (
                json!({ "ip": "a", "port": 1 }),
                "`network.proxy.type` is missing",
            ),
            (
                json!({ "type": "socks4", "port": 1 }),
                "`network.proxy.ip` is missing",
            ),
            (
                json!({ "type": "socks4", "ip": "a" }),
                "`network.proxy.port` is missing",
            ),
        ] {
            let refused = work(json!({ "proxy": fields }), &state).unwrap_err();
            assert!(refused.starts_with(missing), "{refused}");
        }
        let whole = json!({ "proxy": { "type": "socks4", "ip": "a", "port": 1 }, "dns": true });
        let Some(Some(redirection)) = work(whole, &state).unwrap().redirection else {
            panic!("no redirection")
        };
        assert_eq!(redirection.dns.unwrap().to_string(), "8.8.8.8:53");
        assert_eq!(redirection.proxy.login, None);
    }
}

#[test]
fn a_name_server_needs_a_proxy_and_is_ignored_without() {
    assert!(
        work(json!({ "dns": true }), &State::Direct)
            .unwrap()
            .is_nothing()
    );
    let state = State::Redirected(redirected());
    let mut without = redirected();
    without.dns = None;
    let removed = work(json!({ "proxy": { "dns": false } }), &state).unwrap();
    assert_eq!(removed.redirection, Some(Some(without)));
    let reset = work(json!({ "proxy": null, "dns": true }), &state).unwrap();
    assert_eq!(reset.redirection, Some(None));
}

#[test]
fn addresses_without_a_proxy_leave_the_configuration_alone() {
    let state = State::Redirected(redirected());
    let work = work(json!({ "proxy": { "noProxy": [] } }), &state).unwrap();
    assert_eq!(work.redirection, None);
    assert_eq!(work.no_proxy, Some(Vec::new()));
}

#[test]
fn a_host_name_that_is_reset_is_the_devices_own() {
    let set = work(json!({ "hostname": "gate" }), &State::Direct).unwrap();
    assert_eq!(set.host_name.as_deref(), Some("gate"));
    let reset = work(json!({ "hostname": "" }), &State::Direct).unwrap();
    assert_eq!(reset.host_name.as_deref(), Some("0123456"));
    assert!(work(json!({}), &State::Direct).unwrap().is_nothing());
}
