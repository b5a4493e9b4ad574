use std::net::SocketAddr;

use http::HeaderValue;
use plugins::HTTP_REQUESTS;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::*;

/// The owner of a name decides where it points, for example to the API of the device.
#[tokio::test]
async fn a_name_that_leads_to_the_device_itself_is_not_followed() {
    let addresses = |host: &str| {
        let address = match host {
            "rebound.example" => "127.0.0.1:0",
            "lan.example" => "192.168.1.20:0",
            "mapped.example" => "[::ffff:192.168.1.20]:0",
            "container.example" => "172.17.3.4:0",
            _ => "192.0.2.1:0",
        };
        Ok(vec![address.parse().unwrap()])
    };
    for (host, reachable, expected) in [
        ("rebound.example", AddressScope::OtherMachines, false),
        ("rebound.example", AddressScope::Everything, true),
        ("lan.example", AddressScope::OtherMachines, false),
        ("lan.example", AddressScope::Everything, true),
        ("mapped.example", AddressScope::OtherMachines, false),
        ("container.example", AddressScope::OtherMachines, false),
        ("api.example", AddressScope::OtherMachines, true),
    ] {
        let names = Names {
            system: SystemNames::new(addresses),
            reachable,
            own: Arc::new(|| {
                let ip = |text: &str| text.parse().unwrap();
                Ok(OwnAddresses::new(
                    vec![ip("192.168.1.20"), ip("172.17.0.1")],
                    vec![(ip("172.17.0.1"), ip("255.255.0.0"))],
                ))
            }),
        };
        let resolved = names.resolve(host.parse().unwrap()).await;
        assert_eq!(resolved.is_ok(), expected, "{host} {reachable:?}");
    }
}

#[test]
fn an_address_that_is_sent_is_the_one_that_was_checked() {
    for (url, expected) in [
        ("https://api.acme.example/x?y", true),
        ("https://API.acme.example:8443/", true),
        ("http://[::1]:9000/", true),
        ("http://192.168.1.20:80/", true),
        ("http://0x7f.1/", false),
        ("http://2130706433/", false),
        ("http://[0:0:0:0:0:0:0:1]/", false),
    ] {
        let (checked, sent) = (url.parse().unwrap(), url.parse().unwrap());
        assert_eq!(is_same_host(&checked, &sent), expected, "{url}");
    }
}

#[test]
fn a_name_leads_to_other_machines_alone() {
    for (address, expected) in [
        ("192.0.2.1", true),
        ("192.168.1.20", true),
        ("2001:db8::1", true),
        ("127.0.0.1", false),
        ("127.1.2.3", false),
        ("0.0.0.0", false),
        ("0.1.2.3", false),
        ("169.254.169.254", false),
        ("224.0.0.1", false),
        ("255.255.255.255", false),
        ("::1", false),
        ("::", false),
        ("::ffff:127.0.0.1", false),
        ("fe80::1", false),
        ("ff02::1", false),
    ] {
        let parsed = address.parse().unwrap();
        assert_eq!(is_of_other_machines(parsed), expected, "{address}");
    }
}

/// Serves one answer to each connection, or none ever; returns its address, and a message for each request.
async fn server(answer: Option<Vec<u8>>) -> (SocketAddr, mpsc::UnboundedReceiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (requested, requests) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut held = Vec::new();
        loop {
            let (mut connection, _) = listener.accept().await.unwrap();
            let mut request = [0; 4096];
            assert!(connection.read(&mut request).await.unwrap() > 0);
            requested.send(()).unwrap();
            if let Some(answer) = &answer {
                connection.write_all(answer).await.unwrap();
            }
            held.push(connection);
        }
    });
    (address, requests)
}

fn request(url: &str) -> OutgoingRequest {
    OutgoingRequest {
        plugin: Arc::from("weather"),
        request: http::Request::get(url).body(Vec::new()).unwrap(),
        reachable: AddressScope::Everything,
        longest_answer: 1000,
    }
}

#[test]
fn connections_to_so_many_servers_are_kept_and_to_others_once_these_are_closed() {
    let servers = KeptServers::default();
    let url = |number: usize| format!("https://{number}.acme.example/x").parse().unwrap();
    let now = Instant::now();
    assert!((0..KEPT_SERVERS).all(|number| servers.keep(&url(number), now)));
    assert!(!servers.keep(&url(KEPT_SERVERS), now));
    assert!(servers.keep(&url(0), now), "it has its place already");
    let later = now + 2 * IDLE + ANSWER_WITHIN;
    assert!(servers.keep(&url(KEPT_SERVERS), later));
    assert_eq!(servers.0.lock().len(), 1);
}

#[tokio::test]
async fn no_connection_is_kept_to_a_server_beyond_the_most() {
    let http = PluginHttp::new("supervisor0");
    let now = Instant::now();
    for number in 0..KEPT_SERVERS {
        let url = format!("https://{number}.acme.example/").parse().unwrap();
        assert!(http.servers.keep(&url, now));
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let serving = async {
        let (mut connection, _) = listener.accept().await.unwrap();
        let mut request = [0; 4096];
        assert!(connection.read(&mut request).await.unwrap() > 0);
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx";
        connection.write_all(answer).await.unwrap();
        // Closed by the client, and not by the server.
        connection.read(&mut request).await.unwrap()
    };
    let (answer, after) = tokio::join!(http.send(request(&url)), serving);
    assert_eq!((answer.unwrap().status, after), (200, 0));
}

#[tokio::test]
async fn another_spelling_of_a_host_than_was_checked_is_not_sent() {
    let (address, mut requests) = server(None).await;
    let http = PluginHttp::new("supervisor0");
    let url = format!("http://2130706433:{}/", address.port());
    let outcome = http.send(request(&url)).await;
    assert!(matches!(outcome, Err(HttpError::Invalid(_))), "{outcome:?}");
    assert!(requests.try_recv().is_err());
}

#[tokio::test]
async fn an_answer_is_as_long_as_it_may_be_and_no_longer() {
    let http = PluginHttp::new("supervisor0");
    let answer = |fields: &str, length: usize| {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n{fields}\r\n");
        [head.into_bytes(), vec![b'x'; length]].concat()
    };
    let field = |length: usize| format!("x-one: {}\r\n", "y".repeat(length));
    for (answer, expected) in [
        (answer("", 1000), None),
        (answer("", 1001), Some("0 KiB")),
        (answer(&field(60 << 10), 1), None),
        (answer(&field(64 << 10), 1), Some("64 KiB of them")),
    ] {
        let (address, _requests) = server(Some(answer)).await;
        let outcome = http.send(request(&format!("http://{address}/"))).await;
        match (outcome, expected) {
            (Ok(answer), None) => assert_eq!(answer.status, 200),
            (Err(HttpError::TooLarge(why)), Some(expected)) => {
                assert!(why.ends_with(expected), "{why}");
            }
            (outcome, expected) => panic!("{expected:?}: {outcome:?}"),
        }
    }
    let mut headers = HeaderMap::new();
    for _ in 0..FIELDS {
        headers.append("x-one", HeaderValue::from_static("1"));
    }
    assert!(fields(&headers).is_some());
    headers.append("x-one", HeaderValue::from_static("1"));
    assert!(fields(&headers).is_none());
}

#[tokio::test]
async fn a_host_that_never_answers_keeps_a_place_of_the_plugin_for_a_minute() {
    let (address, mut requests) = server(None).await;
    let http = Arc::new(PluginHttp::new("supervisor0"));
    let sending = Arc::clone(&http);
    let request = request(&format!("http://{address}/"));
    let plugin = Arc::clone(&request.plugin);
    let sending = tokio::spawn(async move { sending.send(request).await });
    requests.recv().await.unwrap();
    let places = |number: usize| {
        let mut places: Vec<_> = (0..number).map(|_| http.under_way.take(&plugin)).collect();
        places.pop().unwrap().is_ok()
    };
    assert!(places(HTTP_REQUESTS / 2 - 1));
    assert!(!places(HTTP_REQUESTS / 2));
    tokio::time::pause();
    let begin = tokio::time::Instant::now();
    let outcome = sending.await.unwrap();
    assert!(
        matches!(outcome, Err(HttpError::Unreachable(_))),
        "{outcome:?}"
    );
    assert!(begin.elapsed() <= ANSWER_WITHIN, "{:?}", begin.elapsed());
    assert!(places(HTTP_REQUESTS / 2));
}
