use expect_test::expect;
use proptest::prelude::*;

use super::*;
use crate::conf::parse;

fn redirection() -> Redirection {
    Redirection {
        proxy: Proxy {
            kind: ProxyKind::Socks5,
            address: "10.1.2.3".to_owned(),
            port: 1080,
            login: None,
            password: None,
        },
        dns: None,
    }
}

fn written(before: &str, redirection: &Redirection) -> String {
    let mut conf = parse(before).conf;
    write(&mut conf, redirection);
    conf.write()
}

#[test]
fn a_new_file_has_the_blocks_that_the_host_expects() {
    expect![[r#"
        base {
        	log_debug = off;
        	log_info = on;
        	log = stderr;
        	daemon = off;
        	redirector = iptables;
        }

        redsocks {
        	type = socks5;
        	ip = 10.1.2.3;
        	port = 1080;
        	local_ip = 127.0.0.1;
        	local_port = 12345;
        }
    "#]]
    .assert_eq(&written("", &redirection()));
}

#[test]
fn login_password_and_names_over_tcp_are_written_too() {
    let mut expected = redirection();
    expected.proxy.kind = ProxyKind::HttpConnect;
    expected.proxy.address = "3proxy.example".to_owned();
    expected.proxy.login = Some("bob".to_owned());
    expected.proxy.password = Some("a } \"b\" \\ ü".to_owned());
    expected.dns = Some(DnsRemote {
        address: "8.8.8.8".to_owned(),
        port: 53,
    });
    let text = written("", &expected);
    expect![[r#"
        base {
        	log_debug = off;
        	log_info = on;
        	log = stderr;
        	daemon = off;
        	redirector = iptables;
        }

        redsocks {
        	type = http-connect;
        	ip = "3proxy.example";
        	port = 1080;
        	login = "bob";
        	password = "a } \"b\" \\ ü";
        	local_ip = 127.0.0.1;
        	local_port = 12345;
        }

        dnsu2t {
        	remote_ip = 8.8.8.8;
        	remote_port = 53;
        	local_ip = 127.0.0.1;
        	local_port = 53;
        }
    "#]]
    .assert_eq(&text);
    assert_eq!(read(&parse(&text).conf), Ok(expected));
}

#[test]
fn other_settings_of_the_file_are_kept_except_those_that_others_must_not_choose() {
    let before = r#"
        base { log_debug = on; user = nobody; }
        redudp { local_port = 10053; }
        redsocks {
            local_port = 99;
            type = socks4;
            login = "old";
            listenq = 64;
        }
        dnsu2t { timeout = 7; remote_ip = 1.1.1.1; remote_port = 53; }
        redsocks { local_port = 12346; type = socks4; ip = 10.0.0.9; port = 1; }
    "#;
    let mut expected = redirection();
    expected.dns = Some(DnsRemote {
        address: "9.9.9.9".to_owned(),
        port: 5353,
    });
    expect![[r#"
        base {
        	log_debug = on;
        	user = nobody;
        	log_info = on;
        	log = stderr;
        	daemon = off;
        	redirector = iptables;
        }

        redudp {
        	local_port = 10053;
        }

        redsocks {
        	local_port = 12345;
        	type = socks5;
        	listenq = 64;
        	ip = 10.1.2.3;
        	port = 1080;
        	local_ip = 127.0.0.1;
        }

        dnsu2t {
        	timeout = 7;
        	remote_ip = 9.9.9.9;
        	remote_port = 5353;
        	local_ip = 127.0.0.1;
        	local_port = 53;
        }

        redsocks {
        	local_port = 12346;
        	type = socks4;
        	ip = 10.0.0.9;
        	port = 1;
        }
    "#]]
    .assert_eq(&written(before, &expected));
    assert!(!written(before, &redirection()).contains("dnsu2t"));
}

#[test]
fn a_file_without_a_usable_proxy_says_what_is_wrong() {
    let block = |fields: &str| format!("redsocks {{ {fields} }}\n");
    for (text, expected) in [
        (String::new(), "it has no complete block `redsocks`"),
        (
            "redsocks { type = socks5;".to_owned(),
            "it has no complete block `redsocks`",
        ),
        (block("ip = a; port = 1;"), "`type` is missing"),
        (
            block("type = vpn; ip = a; port = 1;"),
            "`type` is not a known type",
        ),
        (block("type = socks4; port = 1;"), "`ip` is missing"),
        (
            block("type = socks4; ip = \"a b\"; port = 1;"),
            "`ip` is neither an IPv4 address nor a host name",
        ),
        (block("type = socks4; ip = a;"), "`port` is missing"),
        (
            block("type = socks4; ip = a; port = 65536;"),
            "`port` is not 1 to 65535",
        ),
        (
            block("type = socks4; ip = a; port = 0;"),
            "`port` is not 1 to 65535",
        ),
    ] {
        assert_eq!(read(&parse(&text).conf), Err(expected.to_owned()), "{text}");
    }
    // An unusable name server must not disable the proxy.
    let text = block("type = socks4; ip = a; port = 1;") + "dnsu2t { remote_ip = 8.8.8.8; }\n";
    assert_eq!(read(&parse(&text).conf).unwrap().dns, None);
}

#[test]
fn unwritable_values_are_refused_by_name() {
    type Change = fn(&mut Redirection);
    let table: [(Change, &str); 7] = [
        (
            |r| r.proxy.address = "::1".into(),
            "the proxy `::1` is neither",
        ),
        (
            |r| r.proxy.address = "a;}\nb".into(),
            "the proxy `a;}\nb` is neither",
        ),
        (|r| r.proxy.port = 0, "the port is 0"),
        (
            |r| r.proxy.password = Some("}".into()),
            "the password cannot be `}` alone",
        ),
        (
            |r| r.proxy.login = Some("a\nb".into()),
            "the login must have",
        ),
        (
            |r| r.proxy.password = Some("x".repeat(256)),
            "the password must have",
        ),
        (
            |r| {
                r.dns = Some(DnsRemote {
                    address: String::new(),
                    port: 53,
                });
            },
            "the name server `` is neither",
        ),
    ];
    assert_eq!(check(&redirection()), Ok(()));
    for (change, expected) in table {
        let mut written = redirection();
        change(&mut written);
        let refused = check(&written).unwrap_err();
        assert!(refused.starts_with(expected), "{refused}");
    }
}

fn credential() -> impl Strategy<Value = Option<String>> {
    proptest::option::of("[^\\pC]{1,40}")
}

proptest! {
    #[test]
    fn every_redirection_that_may_be_written_is_read_back_whatever_was_there(
        before in any::<String>(),
        kind in 0..4_usize,
        address in "[0-9]{0,2}[a-z][a-z0-9]{0,9}(\\.[a-z]{1,9}){0,3}",
        port in 1..=u16::MAX,
        login in credential(),
        password in credential(),
        dns in proptest::option::of((any::<std::net::Ipv4Addr>(), 1..=u16::MAX)),
    ) {
        let is_sign = |text: &Option<String>| SIGNS.iter().any(|sign| text.as_deref() == Some(*sign));
        prop_assume!(!is_sign(&login) && !is_sign(&password));
        let expected = Redirection {
            proxy: Proxy { kind: ProxyKind::ALL[kind], address, port, login, password },
            dns: dns.map(|(address, port)| DnsRemote { address: address.to_string(), port }),
        };
        prop_assert_eq!(check(&expected), Ok(()));
        prop_assert_eq!(read(&parse(&written(&before, &expected)).conf), Ok(expected));
    }
}
