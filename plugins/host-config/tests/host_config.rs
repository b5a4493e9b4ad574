//! The endpoints on the plugin runtime, with the stock provider of `proxy-redirector` and the shipped
//! policy.

use std::fs;
use std::path::PathBuf;

use http::Request;
use serde_json::{Value, json};
use supervisor_testing::{Answer, Host, Identity, RunningHost, build};

const PATH: &str = "/v1/device/host-config";
const POLICY: &str = include_str!("../../../packaging/policy.toml");
const CONFIGURATION: &str = "mnt/boot/system-proxy/redsocks.conf";
const NO_PROXY: &str = "mnt/boot/system-proxy/no_proxy";

fn host() -> Host {
    let provider = concat!(env!("CARGO_MANIFEST_DIR"), "/../proxy-redirector");
    Host::new()
        .plugin(build(env!("CARGO_MANIFEST_DIR")))
        .plugin(build(provider))
        .policy(POLICY)
        .device(Identity {
            uuid: "0123456789abcdef0123456789abcdef".to_owned(),
            name: "local".to_owned(),
            device_type: "unknown".to_owned(),
            arch: "aarch64".to_owned(),
        })
}

/// Starts a host with a name and without a proxy.
async fn named() -> RunningHost {
    host().file("etc/hostname", "gate\n").start().await
}

fn proxy() -> Value {
    json!({
        "type": "socks5", "ip": "10.2.2.2", "port": 1080, "login": "bob",
        "password": "a } \"b\"", "noProxy": ["10.0.0.0/8", "1.2.3.4"]
    })
}

async fn patch(host: &RunningHost, network: Value) -> (u16, String) {
    let answer = host.patch(PATH, json!({ "network": network })).await;
    let kind = &answer.headers["content-type"];
    assert_eq!(kind, "text/plain; charset=utf-8", "{answer:?}");
    (answer.status.as_u16(), answer.text().to_owned())
}

/// Calls [`patch`], which must succeed.
async fn set(host: &RunningHost, network: Value) {
    let answer = patch(host, network.clone()).await;
    assert_eq!(answer, (200, "OK".to_owned()), "{network}");
}

async fn network(host: &RunningHost) -> Value {
    let answer = host.get(PATH).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let kind = &answer.headers["content-type"];
    assert_eq!(kind, "application/json; charset=utf-8");
    answer.json()["network"].clone()
}

fn file(host: &RunningHost, path: &str) -> Option<String> {
    fs::read_to_string(host.root().join(path)).ok()
}

fn path(host: &RunningHost, path: &str) -> PathBuf {
    host.root().join(path)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_without_a_proxy_has_its_name_alone() {
    let host = named().await;
    assert_eq!(network(&host).await, json!({ "hostname": "gate" }));
    // The default name is the beginning of the device's uuid.
    fs::remove_file(path(&host, "etc/hostname")).unwrap();
    assert_eq!(network(&host).await, json!({ "hostname": "0123456" }));
    assert_eq!(host.update_locks_taken().await, (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn all_of_it_is_set_at_once_and_shown_as_it_was_set() {
    let host = named().await;
    set(
        &host,
        json!({ "hostname": "gate-2", "proxy": proxy(), "dns": true }),
    )
    .await;
    assert_eq!(host.update_locks_taken().await, (1, 0), "one lock for both");
    assert!(!host.update_locks_are_held().await);
    let expected = json!({
        "proxy": {
            "ip": "10.2.2.2", "port": "1080", "type": "socks5", "login": "bob",
            "password": "a } \"b\"", "noProxy": ["10.0.0.0/8", "1.2.3.4"], "dns": "8.8.8.8:53"
        },
        "hostname": "gate-2",
        "dns": "8.8.8.8:53"
    });
    assert_eq!(network(&host).await, expected);
    assert_eq!(file(&host, "etc/hostname").unwrap(), "gate-2\n");
    assert_eq!(file(&host, NO_PROXY).unwrap(), "10.0.0.0/8\n1.2.3.4\n");
    let text = file(&host, CONFIGURATION).unwrap();
    assert!(text.contains("\tpassword = \"a } \\\"b\\\"\";\n"), "{text}");
    assert!(
        text.contains("dnsu2t {\n\tremote_ip = 8.8.8.8;\n"),
        "{text}"
    );
    let left = fs::read_dir(path(&host, "mnt/boot/system-proxy")).unwrap();
    assert_eq!(left.count(), 2, "nothing is left beside the files");
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_that_a_request_leaves_out_and_those_nobody_knows_are_kept() {
    let host = host()
        .file("etc/hostname", "gate\n")
        .file(
            CONFIGURATION,
            "base { log_debug = on; }\nredsocks { type = socks4; ip = 10.9.9.9; port = 9; listenq = 7; }\n\
             redudp { local_port = 10053; }\n",
        )
        .start()
        .await;
    set(
        &host,
        json!({ "proxy": { "port": "10", "login": "x", "local_port": 99, "extra": {} } }),
    )
    .await;
    let shown = network(&host).await["proxy"].clone();
    let expected = json!({ "ip": "10.9.9.9", "port": "10", "type": "socks4", "login": "x" });
    assert_eq!(shown, expected);
    let text = file(&host, CONFIGURATION).unwrap();
    for kept in [
        "log_debug = on;",
        "listenq = 7;",
        "redudp {",
        "local_port = 12345;",
    ] {
        assert!(text.contains(kept), "{kept}: {text}");
    }
    assert_eq!(file(&host, "etc/hostname").unwrap(), "gate\n");
    set(&host, json!({ "proxy": { "login": null } })).await;
    assert!(network(&host).await["proxy"]["login"].is_null());
}

#[tokio::test(flavor = "multi_thread")]
async fn each_part_is_reset_by_each_of_the_empty_values() {
    let host = named().await;
    for empty in [json!(null), json!(false), json!(""), json!({})] {
        set(
            &host,
            json!({ "proxy": proxy(), "dns": "9.9.9.9:5353", "hostname": "gate-3" }),
        )
        .await;
        set(&host, json!({ "dns": empty })).await;
        assert!(!file(&host, CONFIGURATION).unwrap().contains("dnsu2t"));
        set(&host, json!({ "hostname": empty })).await;
        assert_eq!(file(&host, "etc/hostname").unwrap(), "0123456\n", "{empty}");
        set(&host, json!({ "proxy": empty })).await;
        assert_eq!(
            network(&host).await,
            json!({ "hostname": "0123456" }),
            "{empty}"
        );
        assert_eq!(file(&host, CONFIGURATION), None, "{empty}");
        // The list stays for the next proxy.
        assert!(file(&host, NO_PROXY).is_some());
    }
    set(&host, json!({ "proxy": { "noProxy": [] } })).await;
    assert_eq!(file(&host, NO_PROXY), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_without_effect_takes_no_lock() {
    let host = named().await;
    host.hold_update_lock("Lockfile exists for appId: 1, service: main")
        .await;
    for network in [
        json!({}),
        json!({ "dns": true }),
        json!({ "dns": false }),
        json!({ "proxy": { "dns": "8.8.8.8:53" } }),
        json!({ "proxy": { "local_ip": "1.2.3.4", "unknown": 1 } }),
        json!({ "proxy": { "noProxy": null } }),
        json!({ "unknown": 1, "force": false }),
    ] {
        set(&host, network).await;
    }
    assert_eq!(host.update_locks_taken().await, (0, 0));
    assert_eq!(file(&host, CONFIGURATION), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_grant_no_force_overrides_an_update_lock() {
    let policy = POLICY.replace(", \"update-lock-force\"", "");
    assert_ne!(policy, POLICY);
    let host = host().policy(policy).file("etc/hostname", "gate\n");
    let host = host.start().await;
    let message = "Lockfile exists for appId: 1, service: main";
    host.hold_update_lock(message).await;
    let forced = json!({ "hostname": "other", "force": true });
    assert_eq!(patch(&host, forced).await, (423, message.to_owned()));
    assert_eq!(network(&host).await, json!({ "hostname": "gate" }));
    host.release_update_lock().await;
    set(&host, json!({ "hostname": "other", "force": true })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_lock_is_respected_and_force_overrides_it_in_either_place() {
    let host = named().await;
    let message = "Lockfile exists for appId: 1, service: main";
    host.hold_update_lock(message).await;
    for network in [
        json!({ "hostname": "other" }),
        json!({ "proxy": proxy() }),
        json!({ "proxy": { "noProxy": ["1.1.1.1"] } }),
        json!({ "hostname": "other", "force": "yes" }),
    ] {
        assert_eq!(patch(&host, network).await, (423, message.to_owned()));
    }
    assert_eq!(network(&host).await, json!({ "hostname": "gate" }));
    assert_eq!(file(&host, NO_PROXY), None);

    set(&host, json!({ "hostname": "other", "force": true })).await;
    let body = json!({ "network": { "proxy": proxy() }, "force": "on" });
    assert_eq!(host.patch(PATH, body).await.status, 200);
    assert_eq!(host.update_locks_taken().await, (2, 2));
    assert_eq!(network(&host).await["hostname"], "other");
    host.release_update_lock().await;
    set(&host, json!({ "hostname": "free" })).await;
    assert_eq!(host.update_locks_taken().await, (3, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_are_text_and_nothing_is_written() {
    let host = named().await;
    for (network, expected) in [
        (json!({ "hostname": "a b" }), "'network.hostname' is 'a b'"),
        (
            json!({ "hostname": "ok", "proxy": { "port": 0 } }),
            "'network.proxy.port' is '0'",
        ),
        (
            json!({ "hostname": "ok", "dns": "x" }),
            "'network.dns' is 'x'",
        ),
        (
            json!({ "hostname": "ok", "proxy": { "ip": "a" } }),
            "'network.proxy.type' is missing",
        ),
        (
            json!({ "proxy": { "noProxy": ["x"] } }),
            "'network.proxy.noProxy.0' is 'x'",
        ),
        (json!([]), "'network' is an array"),
    ] {
        let (status, text) = patch(&host, network).await;
        assert_eq!(status, 400, "{text}");
        assert!(text.starts_with(expected), "{text}");
    }
    assert_eq!(host.update_locks_taken().await, (0, 0));
    assert_eq!(network(&host).await, json!({ "hostname": "gate" }));
    assert_eq!(file(&host, CONFIGURATION), None);
}

async fn raw(host: &RunningHost, kind: &str, body: &str) -> Answer {
    let request = Request::builder().method("PATCH").uri(PATH);
    let request = request.header("content-type", kind).body(body.to_owned());
    host.send(request).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_none_lacks_its_network_and_one_that_is_no_json_says_where() {
    let host = named().await;
    for (kind, body) in [
        ("application/json", ""),
        ("application/json", "[1]"),
        ("application/json", "{}"),
        ("text/plain", "{\"network\":{\"hostname\":\"x\"}}"),
        ("application/x-www-form-urlencoded", "hostname=x"),
    ] {
        let answer = raw(&host, kind, body).await;
        assert_eq!(answer.status, 400, "{kind} {body}");
        assert!(
            answer.text().starts_with("'network' is missing"),
            "{answer:?}"
        );
    }
    let answer = raw(&host, "application/json", "{\"network\": }").await;
    assert_eq!(answer.status, 400);
    assert_eq!(answer.json()["status"], "failed");
    let message = answer.json()["message"].as_str().unwrap().to_owned();
    assert!(message.contains("line 1 column 13"), "{message}");
    let hostile = format!("{{\"network\":[{}0]}}", "0,".repeat(60_000));
    assert_eq!(raw(&host, "application/json", &hostile).await.status, 400);
    let deep = "{\"network\":".repeat(5000);
    assert_eq!(raw(&host, "application/json", &deep).await.status, 400);
    assert_eq!(network(&host).await, json!({ "hostname": "gate" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_any_content_is_shown_as_far_as_it_is_of_use_and_mended_by_a_whole_proxy() {
    for content in [
        &b"redsocks {"[..],
        b"redsocks { type = socks5; }\n",
        b"\xff\xfe\0 garbage } { = ;",
        b"",
    ] {
        let host = host()
            .file("etc/hostname", "gate\n")
            .file(CONFIGURATION, content)
            .file(NO_PROXY, " 10.0.0.1 \n\n10.0.0.2\n")
            .start()
            .await;
        let expected = json!({ "noProxy": ["10.0.0.1", "10.0.0.2"] });
        assert_eq!(network(&host).await["proxy"], expected);
        // There is no proxy to merge with.
        let (status, text) = patch(&host, json!({ "proxy": { "port": 1 } })).await;
        assert_eq!(
            (status, &text[..21]),
            (400, "'network.proxy.type' "),
            "{text}"
        );
        set(
            &host,
            json!({ "proxy": { "type": "socks4", "ip": "p.example", "port": 1 } }),
        )
        .await;
        assert_eq!(network(&host).await["proxy"]["ip"], "p.example");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_provider_the_name_is_there_and_a_proxy_cannot_be_set() {
    let host = Host::new()
        .plugin(build(env!("CARGO_MANIFEST_DIR")))
        .policy(POLICY)
        .file("etc/hostname", "gate\n")
        .start()
        .await;
    assert_eq!(network(&host).await, json!({ "hostname": "gate" }));
    set(&host, json!({ "hostname": "other" })).await;
    let (status, text) = patch(&host, json!({ "proxy": proxy() })).await;
    assert_eq!(status, 503);
    assert_eq!(text, "no plugin of this device provides 'proxy-redirector'");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_host_reads_its_files_again_after_a_change_unless_it_watches_them() {
    let restarts = ["platform-proxy-config.service", "redsocks.service"];
    let host = named().await;
    set(&host, json!({ "hostname": "other" })).await;
    assert_eq!(host.restarted_units().await, [""; 0]);
    set(&host, json!({ "proxy": proxy() })).await;
    assert_eq!(host.restarted_units().await, restarts);
    set(&host, json!({ "proxy": { "noProxy": [] } })).await;
    set(&host, json!({ "proxy": null })).await;
    assert_eq!(host.restarted_units().await, restarts.repeat(3));

    let host = self::host()
        .unit("redsocks-conf.target", "loaded", "active", "active")
        .start()
        .await;
    set(&host, json!({ "proxy": proxy() })).await;
    assert_eq!(host.restarted_units().await, [""; 0]);
}
