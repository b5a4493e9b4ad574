//! Networks, names in them, and ports to the outside.

use held_port::HeldPort;
use model::{PortMapping, Protocol};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{Fixture, Program, Service, eventually};

const PORT: u16 = 8080;

fn server(fixture: &dyn Fixture, networks: &[&str]) -> Service {
    let serve = Program::Serve {
        port: PORT,
        text: "hello from the server".into(),
    };
    fixture
        .service("server", &serve)
        .in_networks(networks, "greeter")
}

/// Whether a client in the network receives the server's text.
async fn reaches(fixture: &dyn Fixture, network: &str) -> bool {
    let fetch = Program::Fetch {
        host: "greeter".into(),
        port: PORT,
    };
    let client = fixture
        .service("client", &fetch)
        .in_networks(&[network], "client");
    let (code, lines) = fixture.finish(&client).await;
    code == Some(0) && lines == ["hello from the server"]
}

async fn becomes_reachable(fixture: &dyn Fixture, network: &str) {
    eventually(&format!("the server is reached in {network}"), async || {
        reaches(fixture, network).await.then_some(())
    })
    .await;
}

pub async fn services_of_a_network_find_each_other_by_name(fixture: &dyn Fixture) {
    let network = fixture.network("front").await;
    fixture.start(&server(fixture, &[&network])).await;
    becomes_reachable(fixture, &network).await;
}

pub async fn services_of_different_networks_do_not_find_each_other(fixture: &dyn Fixture) {
    let front = fixture.network("front").await;
    let back = fixture.network("back").await;
    fixture.start(&server(fixture, &[&front])).await;
    becomes_reachable(fixture, &front).await;
    assert!(!reaches(fixture, &back).await);
}

pub async fn service_joins_all_its_networks_before_it_starts(fixture: &dyn Fixture) {
    let front = fixture.network("front").await;
    let back = fixture.network("back").await;
    fixture.start(&server(fixture, &[&front, &back])).await;
    becomes_reachable(fixture, &front).await;
    becomes_reachable(fixture, &back).await;
}

pub async fn making_a_network_twice_is_no_error(fixture: &dyn Fixture) {
    let name = fixture.network("front").await;
    fixture.network("front").await;
    let listed = fixture.engine().networks().await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].name, name);
    assert_eq!(listed[0].labels, fixture.labels());
    assert_eq!(listed[0].engine, fixture.engine().kind());
}

pub async fn removing_a_network_that_is_gone_is_no_error(fixture: &dyn Fixture) {
    let name = fixture.network("front").await;
    // Its name contains the other one.
    let longer = fixture.network("my-front").await;
    for _ in 0..2 {
        fixture.engine().remove_network(&name).await.unwrap();
        let left = fixture.engine().networks().await.unwrap();
        assert_eq!(left.len(), 1);
        assert_eq!(left[0].name, longer);
    }
}

pub async fn published_port_is_reached_from_the_host(fixture: &dyn Fixture) {
    let network = fixture.network("front").await;
    let mut service = server(fixture, &[&network]);
    let held = HeldPort::new().unwrap();
    let host_port = held.address().port();
    service.config.ports.push(PortMapping {
        host_ip: "127.0.0.1".into(),
        host_port: Some(host_port),
        container_port: PORT,
        protocol: Protocol::Tcp,
    });
    let id = fixture.start(&service).await;
    let answer = eventually("the port answers", async || {
        let mut stream = TcpStream::connect(("127.0.0.1", host_port)).await.ok()?;
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await.ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        (!answer.is_empty()).then_some(answer)
    })
    .await;
    assert!(
        answer.trim_end().ends_with("\r\n\r\nhello from the server"),
        "{answer}"
    );

    // The port is released: the next container can have it.
    fixture.engine().remove_container(&id).await.unwrap();
    eventually("the port is free again", async || {
        std::net::TcpListener::bind(("127.0.0.1", host_port)).ok()
    })
    .await;
}
