//! Requests of plugins to other hosts.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{HeaderMap, Uri};
use model::error_chain;
use names::SystemNames;
use parking_lot::Mutex;
use plugins::{AddressScope, HttpClient, HttpError, HttpResponse, OutgoingRequest};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use reqwest::{Client, Url};

use crate::facts::OwnAddresses;
use crate::request_places::RequestPlaces;

/// How long a connection may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// The maximum duration of a whole request, including its answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// The maximum number of header fields of an answer that a plugin gets, and their maximum total
/// length in bytes.
const FIELDS: usize = 100;
const FIELD_BYTES: usize = 64 << 10;

/// How long a connection is kept for the next request.
const IDLE: Duration = Duration::from_secs(30);
/// To how many servers connections are kept. With a wildcard in its policy, a plugin could name any number.
const KEPT_SERVERS: usize = 64;

/// Sends the requests of all plugins. Uses no resources before the first.
pub(crate) struct PluginHttp {
    /// The bridge of services that use the API.
    network: String,
    to_other_machines: Clients,
    to_everything: Clients,
    servers: KeptServers,
    under_way: RequestPlaces,
}

/// The clients for one scope of addresses.
#[derive(Default)]
struct Clients {
    /// Keeps connections.
    keeping: OnceLock<Client>,
    /// Closes each connection after its request.
    closing: OnceLock<Client>,
}

/// The servers to which connections are kept, with the time of the last request.
#[derive(Default)]
struct KeptServers(Mutex<HashMap<String, Instant>>);

impl KeptServers {
    /// Returns whether the connection to this server, which a request will use now, may be kept.
    fn keep(&self, url: &Url, now: Instant) -> bool {
        let server = url.origin().ascii_serialization();
        let mut servers = self.0.lock();
        // An idle connection is closed after one to two times this.
        servers.retain(|_, used| now.duration_since(*used) < 2 * IDLE + ANSWER_WITHIN);
        let is_kept = servers.contains_key(&server) || servers.len() < KEPT_SERVERS;
        if is_kept {
            servers.insert(server, now);
        }
        is_kept
    }
}

impl HttpClient for PluginHttp {
    fn send(&self, request: OutgoingRequest) -> BoxFuture<'_, Result<HttpResponse, HttpError>> {
        async move {
            match tokio::time::timeout(ANSWER_WITHIN, self.exchange(request)).await {
                Ok(outcome) => outcome,
                Err(_) => Err(HttpError::Unreachable(format!(
                    "there was no answer within {} s",
                    ANSWER_WITHIN.as_secs()
                ))),
            }
        }
        .boxed()
    }
}

impl PluginHttp {
    /// Creates the sender, on a device whose bridge of services that use the API is called
    /// `network`.
    pub(crate) fn new(network: &str) -> Self {
        PluginHttp {
            network: network.to_owned(),
            to_other_machines: Clients::default(),
            to_everything: Clients::default(),
            servers: KeptServers::default(),
            under_way: RequestPlaces::default(),
        }
    }

    async fn exchange(&self, outgoing: OutgoingRequest) -> Result<HttpResponse, HttpError> {
        let OutgoingRequest {
            request,
            reachable,
            longest_answer,
            plugin,
        } = outgoing;
        let _place = self.under_way.wait(&plugin).await;
        let checked = request.uri().clone();
        let request = reqwest::Request::try_from(request).map_err(unreachable)?;
        if !is_same_host(&checked, request.url()) {
            return Err(HttpError::Invalid(
                "the host in `url` is not in normalized form".to_owned(),
            ));
        }
        let client = self.client(reachable, request.url())?;
        let mut answer = client.execute(request).await.map_err(unreachable)?;
        let too_large =
            |what: &str| HttpError::TooLarge(format!("the answer has more than {what}"));
        let headers = fields(answer.headers())
            .ok_or_else(|| too_large("100 header fields or 64 KiB of them"))?;
        let status = answer.status().as_u16();
        let mut body = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(unreachable)? {
            if body.len() + piece.len() > longest_answer {
                return Err(too_large(&format!("{} KiB", longest_answer >> 10)));
            }
            body.extend_from_slice(&piece);
        }
        Ok(HttpResponse {
            status,
            headers,
            body,
        })
    }

    fn client(&self, reachable: AddressScope, url: &Url) -> Result<&Client, HttpError> {
        let clients = match reachable {
            AddressScope::OtherMachines => &self.to_other_machines,
            AddressScope::Everything => &self.to_everything,
        };
        let (cell, kept_connections) = if self.servers.keep(url, Instant::now()) {
            (&clients.keeping, 1)
        } else {
            (&clients.closing, 0)
        };
        if let Some(client) = cell.get() {
            return Ok(client);
        }
        let network = self.network.clone();
        // A second installation is refused, and the first one stays in use.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .user_agent(concat!("supervisor/", env!("CARGO_PKG_VERSION")))
            .dns_resolver(Arc::new(Names {
                system: names::system(),
                reachable,
                own: Arc::new(move || OwnAddresses::read(&network)),
            }))
            .connect_timeout(CONNECT_WITHIN)
            .redirect(Policy::none())
            // A proxy would resolve the names itself.
            .no_proxy()
            .pool_max_idle_per_host(kept_connections)
            .pool_idle_timeout(IDLE)
            .build()
            .map_err(unreachable)?;
        Ok(cell.get_or_init(|| client))
    }
}

/// Returns whether the address of the connection is the one that was checked against the policy: there are spellings,
/// such as `0x7f.1` for `127.0.0.1`, that only one of the two standards for addresses recognizes.
fn is_same_host(checked: &Uri, sent: &Url) -> bool {
    let host = checked.host().unwrap_or_default();
    let is_same = sent
        .host_str()
        .is_some_and(|sent| sent.eq_ignore_ascii_case(host));
    let default = sent.port_or_known_default();
    is_same && checked.port_u16().is_none_or(|port| default == Some(port))
}

/// Returns the header fields of an answer; `None` if there are too many.
fn fields(headers: &HeaderMap) -> Option<Vec<(String, Vec<u8>)>> {
    let fields = headers
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec()));
    let fields: Vec<_> = fields.collect();
    let lengths = fields.iter().map(|(name, value)| name.len() + value.len());
    (fields.len() <= FIELDS && lengths.sum::<usize>() <= FIELD_BYTES).then_some(fields)
}

fn unreachable(error: reqwest::Error) -> HttpError {
    // The plugin itself has supplied the address.
    HttpError::Unreachable(error_chain(&error.without_url()))
}

/// Resolves names for requests that must not lead back to the device itself.
struct Names {
    system: SystemNames,
    reachable: AddressScope,
    /// Reads the addresses of this device. They may differ with each request.
    own: Arc<dyn Fn() -> io::Result<OwnAddresses> + Send + Sync>,
}

impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        let (system, reachable) = (self.system.clone(), self.reachable);
        let own = Arc::clone(&self.own);
        async move {
            let mut addresses = system.addresses(name.as_str()).await?;
            if reachable == AddressScope::OtherMachines {
                let own = own()?;
                addresses.retain(|address| {
                    is_of_other_machines(address.ip()) && !own.contain(address.ip())
                });
                if addresses.is_empty() {
                    return Err(io::Error::other(
                        "the name resolves to this device, which the policy does not name",
                    )
                    .into());
                }
            }
            let addresses: Addrs = Box::new(addresses.into_iter());
            Ok(addresses)
        }
        .boxed()
    }
}

/// Returns whether an address can belong to another machine, rather than to a service of this host or of the cloud that
/// the host runs in.
fn is_of_other_machines(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            !(address.is_loopback()
                || address.is_link_local()
                || address.is_multicast()
                || address.is_broadcast()
                || address.octets()[0] == Ipv4Addr::UNSPECIFIED.octets()[0])
        }
        IpAddr::V6(address) => {
            !(address.is_loopback()
                || address.is_unspecified()
                || address.is_multicast()
                || address.is_unicast_link_local())
        }
    }
}

#[cfg(test)]
mod tests {
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
}
