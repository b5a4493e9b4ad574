//! Who reaches whom, tested from within services.

use std::net::{Ipv4Addr, TcpListener as StdListener, UdpSocket as StdUdpSocket};

use engine::{ContainerSpec, EngineError};
use held_port::HeldPort;
use model::{ContainerId, ContainerState, NetworkMode, PortMapping, Protocol};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::fixture::{WasmFixture, test};
use crate::suite::{Fixture, Service};

const REFUSED: &str = "failed: ConnectionRefused";
const DENIED: &str = "failed: PermissionDenied";

/// Starts an echo that the network knows as `name`.
async fn echo(
    fixture: &WasmFixture,
    program: &str,
    address: &str,
    network: &str,
    name: &str,
) -> ContainerId {
    let service = fixture
        .runs(name, &[program, address])
        .in_networks(&[network], name);
    let id = fixture.start(&service).await;
    fixture
        .wait_for_line(&id, |line| line.starts_with("listening on "))
        .await;
    id
}

/// Returns the service's result for each target, in order.
async fn asks(fixture: &WasmFixture, mut service: Service, targets: &[&str]) -> Vec<String> {
    let words = ["ask"].iter().chain(targets);
    service.config.command = Some(words.map(|word| (*word).to_owned()).collect());
    let id = fixture.start(&service).await;
    let lines = fixture.lines_until(&id, "waiting").await;
    fixture.engine().remove_container(&id).await.unwrap();
    let answers = lines.iter().zip(targets);
    answers
        .map(|(line, target)| {
            let answer = line.strip_prefix(&format!("{target}: ")).expect(line);
            answer.to_owned()
        })
        .collect()
}

async fn check(fixture: &WasmFixture, service: Service, table: &[(&str, &str)]) {
    let targets: Vec<&str> = table.iter().map(|(target, _)| *target).collect();
    let answers = asks(fixture, service, &targets).await;
    for ((target, expected), answer) in table.iter().zip(answers) {
        assert!(answer.starts_with(expected), "{target}: {answer}");
    }
}

fn address_of(fixture: &WasmFixture, id: &ContainerId) -> Ipv4Addr {
    let record = std::fs::read(fixture.container(id).join("container.json")).unwrap();
    let record: serde_json::Value = serde_json::from_slice(&record).unwrap();
    record["address"].as_str().unwrap().parse().unwrap()
}

#[test]
fn services_reach_whom_they_share_a_network_with_and_not_the_host() {
    test(async |fixture| {
        let words: &dyn Fixture = &*fixture;
        let front = words.network("front").await;
        let back = words.network("back").await;
        let friend = echo(&fixture, "tcp-echo", "0.0.0.0:7000", &front, "friend").await;
        echo(&fixture, "udp-echo", "0.0.0.0:7000", &front, "datagrams").await;
        echo(&fixture, "tcp-echo", "[::]:7000", &front, "six").await;
        echo(&fixture, "udp-echo", "[::]:7000", &front, "six-datagrams").await;
        echo(&fixture, "tcp-echo", "127.0.0.1:7000", &front, "shy").await;
        let stranger = echo(&fixture, "tcp-echo", "0.0.0.0:7000", &back, "stranger").await;
        let (friend, stranger) = (
            address_of(&fixture, &friend),
            address_of(&fixture, &stranger),
        );

        // Programs of the host: one on the loopback, one on all its addresses.
        let local = StdListener::bind("127.0.0.1:0").unwrap();
        let local = local.local_addr().unwrap().port();
        let everywhere = StdListener::bind("0.0.0.0:0").unwrap();
        let everywhere = everywhere.local_addr().unwrap().port();
        let api = fixture.api.port();

        let service = fixture.runs("asker", &[]).in_networks(&[&front], "asker");
        check(
            &fixture,
            service,
            &[
                ("tcp://friend:7000", "ping"),
                (&format!("tcp://{friend}:7000"), "ping"),
                ("udp://datagrams:7000", "ping"),
                ("tcp://six:7000", "ping"),
                ("udp://six-datagrams:7000", "ping"),
                ("tcp://shy:7000", "ping"),
                ("name://friend", &friend.to_string()),
                // where nobody listens
                ("tcp://friend:7001", REFUSED),
                ("udp://friend:7000", REFUSED),
                // who is in another network
                (&format!("tcp://{stranger}:7000"), REFUSED),
                // the host
                (&format!("tcp://127.0.0.1:{local}"), REFUSED),
                (&format!("tcp://127.0.0.1:{everywhere}"), REFUSED),
                (&format!("tcp://localhost:{everywhere}"), REFUSED),
                (&format!("tcp://[::1]:{everywhere}"), REFUSED),
                (&format!("tcp://{friend}:{everywhere}"), REFUSED),
                (&format!("tcp://127.0.0.1:{api}"), REFUSED),
            ],
        )
        .await;
    });
}

#[test]
fn callers_have_their_own_address_and_listeners_the_requested_port() {
    test(async |fixture| {
        let words: &dyn Fixture = &*fixture;
        let front = words.network("front").await;
        let id = echo(&fixture, "tcp-echo", "0.0.0.0:80", &front, "web").await;
        let address = address_of(&fixture, &id);
        fixture
            .wait_for_line(&id, |line| line == format!("listening on {address}:80"))
            .await;
        let mut service = fixture.runs("asker", &[]).in_networks(&[&front], "asker");
        service.config.command = Some(vec!["ask-who".into(), "web:80".into()]);
        let asker = fixture.start(&service).await;
        let caller = address_of(&fixture, &asker);
        let line = fixture
            .wait_for_line(&asker, |line| line.starts_with("seen as "))
            .await;
        assert!(line.starts_with(&format!("seen as {caller}:")), "{line}");
        fixture
            .wait_for_line(&asker, |line| line == format!("asked {address}:80"))
            .await;
    });
}

#[test]
fn api_is_reached_with_the_label_alone() {
    test(async |fixture| {
        let words: &dyn Fixture = &*fixture;
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0))
            .await
            .unwrap();
        let port = listener.local_addr().unwrap().port();
        fixture
            .reopen_with_api(listener.local_addr().unwrap())
            .await;
        tokio::spawn(async move {
            while let Ok((mut client, caller)) = listener.accept().await {
                // The API counts the connections of each address.
                let is_host = caller.ip() == Ipv4Addr::LOCALHOST;
                let answer = if is_host { "as the host" } else { "api" };
                let _ = client.write_all(answer.as_bytes()).await;
            }
        });
        let network = fixture.internal_network("front").await;
        for (label, expected) in [(None, "failed"), (Some("0"), "failed"), (Some("1"), "api")] {
            let mut service = fixture.runs("asker", &[]).in_networks(&[&network], "asker");
            let branding = words.ownership().branding;
            if let Some(value) = label {
                let label = branding.label("features.supervisor-api");
                service.config.labels.insert(label, value.into());
            }
            // Any service can set it.
            let host = branding.env("SUPERVISOR_HOST");
            service
                .config
                .environment
                .insert(host, "10.114.104.1".into());
            let variable = branding.env("SUPERVISOR_PORT");
            service
                .config
                .environment
                .insert(variable, port.to_string());
            check(
                &fixture,
                service,
                &[
                    (&format!("tcp://10.114.104.1:{port}"), expected),
                    (&format!("tcp://127.0.0.1:{port}"), expected),
                ],
            )
            .await;
        }
    });
}

#[test]
fn network_modes_are_kept() {
    test(async |fixture| {
        let words: &dyn Fixture = &*fixture;
        let host = tokio::net::TcpListener::bind(("127.0.0.1", 0))
            .await
            .unwrap();
        let port = host.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((mut client, _)) = host.accept().await {
                let _ = client.write_all(b"host").await;
            }
        });
        let target = format!("tcp://127.0.0.1:{port}");
        for (mode, expected) in [
            (NetworkMode::Host, "host"),
            (NetworkMode::Bridge, REFUSED),
            (NetworkMode::None, DENIED),
        ] {
            let mut service = fixture.runs("asker", &[]);
            service.config.network_mode = mode;
            check(&fixture, service, &[(&target, expected)]).await;
        }

        // An internal network gives access to no other machine, and resolves only its own names.
        let network = fixture.internal_network("inside").await;
        let service = fixture.runs("asker", &[]).in_networks(&[&network], "asker");
        let targets = [
            ("tcp://192.0.2.1:9", DENIED),
            ("name://example.invalid", "failed"),
        ];
        check(&fixture, service, &targets).await;

        // A service that shares the network of another one has the same identity, to itself and to
        // others.
        let front = words.network("front").await;
        let web = echo(&fixture, "tcp-echo", "0.0.0.0:7000", &front, "web").await;
        let mut service = fixture.runs("beside", &["tcp-echo", "0.0.0.0:7001"]);
        service.config.network_mode = NetworkMode::Service("web".parse().unwrap());
        let image = words.pull().await;
        let spec = ContainerSpec {
            name: &service.name,
            config: &service.config,
            init_environment: &service.init_environment,
            image_id: &image.id,
            network_container: Some(&web),
        };
        let engine = fixture.engine();
        let beside = engine.create_container(&spec).await.unwrap().id;
        engine.start_container(&beside).await.unwrap();
        fixture
            .wait_for_line(&beside, |line| line.ends_with(":7001"))
            .await;
        let service = fixture.runs("asker", &[]).in_networks(&[&front], "asker");
        let targets = [("tcp://web:7000", "ping"), ("tcp://web:7001", "ping")];
        check(&fixture, service, &targets).await;
    });
}

fn published(mut service: Service, host_port: u16, port: u16) -> Service {
    service.config.ports.push(PortMapping {
        host_ip: "127.0.0.1".into(),
        host_port: Some(host_port),
        container_port: port,
        protocol: Protocol::Tcp,
    });
    service
}

#[test]
fn port_is_published_by_its_own_number_and_over_udp() {
    test(async |fixture| {
        let held = HeldPort::at_all_addresses().unwrap();
        let port = held.address().port();
        let address = format!("0.0.0.0:{port}");
        // The same port number inside and outside, which are two listeners on one machine here.
        let mut service = fixture.runs("tcp", &["tcp-echo", &address]);
        service.config.ports.push(PortMapping {
            host_ip: String::new(),
            host_port: Some(port),
            container_port: port,
            protocol: Protocol::Tcp,
        });
        let id = fixture.start(&service).await;
        fixture
            .wait_for_line(&id, |line| line.starts_with("listening"))
            .await;
        for host in ["127.0.0.1", "::1"] {
            let mut client = TcpStream::connect((host, port)).await.unwrap();
            client.write_all(b"hello").await.unwrap();
            let mut answer = [0; 5];
            client.read_exact(&mut answer).await.unwrap();
            assert_eq!(&answer, b"hello");
        }

        // An address that only this test uses: a UDP port cannot be reserved for another process.
        let (host, port) = ("127.0.0.48", 4853);
        let mut service = fixture.runs("udp", &["udp-echo", "0.0.0.0:53"]);
        service.config.ports.push(PortMapping {
            host_ip: host.to_owned(),
            host_port: Some(port),
            container_port: 53,
            protocol: Protocol::Udp,
        });
        let id = fixture.start(&service).await;
        fixture
            .wait_for_line(&id, |line| line.starts_with("listening"))
            .await;
        let answer = tokio::task::spawn_blocking(move || {
            let client = StdUdpSocket::bind("127.0.0.1:0").unwrap();
            client.send_to(b"hello", (host, port)).unwrap();
            client
                .set_read_timeout(Some(crate::suite::PATIENCE))
                .unwrap();
            let mut answer = [0; 16];
            let (length, from) = client.recv_from(&mut answer).unwrap();
            assert_eq!(from.port(), port);
            answer[..length].to_vec()
        });
        assert_eq!(answer.await.unwrap(), b"hello");
    });
}

#[test]
fn a_start_with_a_port_in_use_fails_with_the_reason() {
    test(async |fixture| {
        let words: &dyn Fixture = &*fixture;
        // It stays this test's between the listener and the service.
        let held = HeldPort::new().unwrap();
        let listener = StdListener::bind(held.address()).unwrap();
        let port = held.address().port();
        let service = published(fixture.runs("web", &["tick"]), port, 80);
        let id = words.create(&service).await;
        let Err(EngineError::Failed { action, source }) =
            fixture.engine().start_container(&id).await
        else {
            panic!("it started");
        };
        assert!(action.contains(&service.name), "{action}");
        let source = source.to_string();
        assert!(source.contains(&format!("127.0.0.1:{port}")), "{source}");
        let found = words.find(&id).await.unwrap();
        assert_eq!(found.state, ContainerState::Created);

        drop(listener);
        fixture.engine().start_container(&id).await.unwrap();
        words.wait_for(&id, ContainerState::Running).await;
    });
}
