//! The written configuration, used by the real redirector.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tests::{DEADLINE, NetworkNamespace, Supervisor};

use crate::test_proxy;

/// The address at which the redirector waits for connections (docs/spec/device.md#proxy-files).
const REDIRECTOR: &str = "127.0.0.1:12345";
/// Addresses of the network's machine that represent servers elsewhere.
const ELSEWHERE: &str = "203.0.113.5";
const NOT_PROXIED: &str = "203.0.113.6";
/// An address that nobody has.
const NOWHERE: &str = "198.51.100.7:80";

async fn set(device: &Supervisor, network: Value) {
    let request = device.request("PATCH", "/v1/device/host-config");
    let body = json!({ "network": network });
    let answer = device.send(request.json(&body)).await;
    assert_eq!((answer.status, answer.text.as_str()), (200, "OK"), "{body}");
}

fn folder(device: &Supervisor) -> PathBuf {
    device.host_root().join("mnt/boot/system-proxy")
}

#[tokio::test]
async fn the_redirector_takes_every_configuration_that_is_written() {
    if !Path::new("/usr/sbin/redsocks").exists() {
        println!("SKIPPED: redsocks is not installed");
        return;
    }
    let device = Supervisor::on_wasm().start().await;
    let passwords = [
        "plain",
        "with space",
        "a } b",
        "} ",
        "\"",
        "\\",
        "\\n",
        "a\"b\\c;{}",
        "// no comment",
        "/* nor */",
        "ünï",
        "'",
        "#",
        "=;",
    ];
    let kinds = ["socks4", "socks5", "http-connect", "http-relay"];
    for (password, kind) in passwords.iter().zip(kinds.iter().cycle()) {
        // A name that can be resolved anywhere, and an address.
        for ip in ["localhost", "10.1.2.3"] {
            let proxy = json!({
                "type": kind, "ip": ip, "port": 65535, "login": format!("as {password}"), "password": password
            });
            set(&device, json!({ "proxy": proxy })).await;
            let file = folder(&device).join("redsocks.conf");
            let test = Command::new("/usr/sbin/redsocks")
                .arg("-t")
                .arg("-c")
                .arg(&file)
                .output()
                .unwrap();
            let text = fs::read_to_string(file).unwrap();
            assert!(test.status.success(), "{test:?}\n{text}");
        }
    }
    // If a value is one of its own signs, it is read as that sign, even in quotes.
    for sign in ["{", "}", "=", ";", "//", "/*"] {
        let request = device.request("PATCH", "/v1/device/host-config");
        let body = json!({ "network": { "proxy": { "password": sign } } });
        let answer = device.send(request.json(&body)).await;
        assert_eq!(answer.status, 400, "{sign}: {answer:?}");
        assert!(answer.text.contains("the password"), "{answer:?}");
    }
    let shown = device.json("/v1/device/host-config").await["network"]["proxy"].clone();
    assert_eq!(shown["password"], "=;");
}

/// The redirector, until it is dropped.
struct Redirector(Child);

impl Drop for Redirector {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Acts like the host on the two files: sets rules of the firewall, and starts the redirector.
fn redirect(network: &NetworkNamespace, folder: &Path) -> Redirector {
    let no_proxy = fs::read_to_string(folder.join("no_proxy")).unwrap_or_default();
    network.run("iptables -w -t nat -F OUTPUT");
    for address in no_proxy.lines().chain(["127.0.0.0/8"]) {
        network.run(&format!(
            "iptables -w -t nat -A OUTPUT -p tcp -d {address} -j RETURN"
        ));
    }
    network.run("iptables -w -t nat -A OUTPUT -p tcp -j REDIRECT --to-ports 12345");
    let process = network
        .command("redsocks")
        .arg("-c")
        .arg(folder.join("redsocks.conf"))
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let redirector = Redirector(process);
    network.inside(|| {
        let deadline = Instant::now() + DEADLINE;
        while TcpStream::connect(REDIRECTOR).is_err() {
            assert!(Instant::now() < deadline, "the redirector does not listen");
            thread::sleep(Duration::from_millis(10));
        }
    });
    redirector
}

/// Connects in the network, and returns everything that the server sends.
fn ask(network: &NetworkNamespace, address: SocketAddr) -> String {
    network.inside(move || {
        let mut text = String::new();
        let mut connection = TcpStream::connect(address).unwrap();
        connection.set_read_timeout(Some(DEADLINE)).unwrap();
        connection.read_to_string(&mut text).unwrap();
        text
    })
}

/// Starts a server in the network that sends `direct`, and then everything it receives.
fn server(network: &NetworkNamespace, address: &str) -> SocketAddr {
    network.add_address(address);
    let address = format!("{address}:0");
    network.inside(move || {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for client in listener.incoming() {
                thread::spawn(move || {
                    let mut client = client?;
                    client.write_all(b"direct")?;
                    let mut byte = [0; 1];
                    while client.read(&mut byte)? > 0 {
                        client.write_all(&byte)?;
                    }
                    std::io::Result::Ok(())
                });
            }
        });
        address
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn new_connections_use_the_proxy_and_open_ones_go_on() {
    let Some(network) = NetworkNamespace::make(&["redsocks", "iptables"]) else {
        return;
    };
    let device = Supervisor::on_wasm().start().await;
    let proxy = network.inside(test_proxy::serve);
    let elsewhere = server(&network, ELSEWHERE);
    let not_proxied = server(&network, NOT_PROXIED);
    let nowhere: SocketAddr = NOWHERE.parse().unwrap();
    let direct = move |address| {
        let mut connection = TcpStream::connect(address).unwrap();
        let mut greeting = [0; 6];
        connection.read_exact(&mut greeting).unwrap();
        assert_eq!(&greeting, b"direct");
        connection
    };
    // A host's firewall matches open connections (docs/spec/device.md#firewall), so its kernel tracks them.
    network.run("iptables -w -A INPUT -m conntrack --ctstate ESTABLISHED -j ACCEPT");
    let mut open = network.inside(move || direct(elsewhere));

    for (kind, who) in [
        ("socks5", "bob with a } \"b\" \\"),
        ("socks4", "bob"),
        ("http-connect", ""),
    ] {
        let settings = json!({
            "type": kind, "ip": "127.0.0.1", "port": proxy, "login": "bob",
            "password": "a } \"b\" \\", "noProxy": [format!("{NOT_PROXIED}/32")]
        });
        set(&device, json!({ "proxy": settings })).await;
        let _redirector = redirect(&network, &folder(&device));
        for address in [nowhere, elsewhere] {
            let answer = ask(&network, address);
            assert_eq!(answer, test_proxy::message(address, who), "{kind}");
        }
        drop(network.inside(move || direct(not_proxied)));
        // Connections that were open before continue unchanged.
        open.write_all(b"!").unwrap();
        let mut echo = [0];
        open.read_exact(&mut echo).unwrap();
        assert_eq!(&echo, b"!");
    }

    set(&device, json!({ "proxy": null })).await;
    assert!(!folder(&device).join("redsocks.conf").exists());
}
