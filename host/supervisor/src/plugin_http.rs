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
mod tests;
