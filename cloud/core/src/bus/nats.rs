//! The bus between machines: NATS.
//!
//! Messages go to every replica, the sender included: when a replica receives its own message, it knows that it
//! receives the others' too. Until it has done so after (re)connecting, it cannot know what it missed, and caches have
//! to be bypassed in favour of the database.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use async_nats::connection::State;
use async_nats::{Client, ConnectOptions, Event, ServerAddr, Subscriber};
use futures::StreamExt as _;
use parking_lot::Mutex;
use percent_encoding::percent_decode_str;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::dispatcher::{Dispatcher, Notification};
use super::envelope::{Envelope, Payload};
use super::subjects::Subjects;
use crate::random::random_text;

/// Messages that wait for the connection; if there are more, the other replicas are informed that some were lost.
const WAITING: usize = 4096;
/// Unread messages of one subscription; more are dropped, which the reader detects.
const UNREAD: usize = 4096;
/// Interval between checks that the server is still there.
const PING: Duration = Duration::from_secs(10);
/// Interval between checks of the connection.
const LOOK: Duration = Duration::from_millis(100);
/// How long the connection may be down before this is logged.
const AWAY: Duration = Duration::from_secs(1);
/// How long sending the remaining messages may take at the end.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A connection to a server, or to one of several.
pub struct Nats {
    client: Client,
    subjects: Subjects,
    /// The name of this replica in its messages.
    name: String,
    queue: mpsc::Sender<Payload>,
    waiting: Mutex<Option<mpsc::Receiver<Payload>>>,
    /// Whether a message found no room in the queue.
    overflowed: AtomicBool,
    /// Number of the connection on which we last received our own probe message.
    probed_connection: AtomicU64,
    /// Whether messages arrived faster than they were read, and were dropped.
    dropped: Arc<AtomicBool>,
}

impl Nats {
    /// Connects to `url`, now or as soon as it can.
    ///
    /// # Errors
    /// If it is not an address.
    pub(super) async fn connect(url: &str, prefix: &str) -> Result<Self> {
        let servers = servers(url)?;
        let dropped = Arc::new(AtomicBool::default());
        let drops = dropped.clone();
        let mut options = ConnectOptions::new()
            .name("fleet-cloud")
            .retry_on_initial_connect()
            .ping_interval(PING)
            .subscription_capacity(UNREAD)
            .event_callback(move |event| {
                on_event(&event, &drops);
                std::future::ready(())
            });
        let named = servers.iter().find_map(|server| {
            let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
            let user = decoded(server.username()?);
            Some((user, decoded(server.password().unwrap_or_default())))
        });
        if let Some((user, password)) = named {
            options = options.user_and_password(user, password);
        }
        let client = options
            .connect(servers)
            .await
            .context("the bus cannot be used")?;
        let (queue, waiting) = mpsc::channel(WAITING);
        Ok(Nats {
            client,
            subjects: Subjects::under(prefix),
            name: random_text(8)?,
            queue,
            waiting: Mutex::new(Some(waiting)),
            overflowed: AtomicBool::default(),
            probed_connection: AtomicU64::default(),
            dropped,
        })
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn subjects(&self) -> &Subjects {
        &self.subjects
    }

    /// Whether there is a connection at the moment.
    pub(crate) fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    /// Returns the number of the current connection, counted from the start.
    fn connection(&self) -> u64 {
        let statistics = self.client.statistics();
        statistics.connects.load(Ordering::SeqCst)
    }

    /// Whether the messages of other replicas are received.
    pub(super) fn receives_all(&self) -> bool {
        self.is_connected() && self.probed_connection.load(Ordering::SeqCst) == self.connection()
    }

    /// Sends a message to the other replicas, as soon as there is a connection.
    pub(super) fn publish(&self, payload: Payload) {
        if self.queue.try_send(payload).is_err() {
            self.overflowed.store(true, Ordering::SeqCst);
        }
    }

    async fn send(&self, payload: Payload) {
        let envelope = Envelope {
            from: self.name.clone(),
            what: payload,
        };
        let sent = match serde_json::to_vec(&envelope) {
            Ok(text) => self
                .client
                .publish(self.subjects.notifications(), text.into())
                .await
                .map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = sent {
            tracing::warn!("cannot notify other replicas of a change: {error}");
        }
    }

    /// Sends queued messages until `stop`, then the remaining ones.
    async fn send_queued(&self, stop: &CancellationToken) {
        let Some(mut waiting) = self.waiting.lock().take() else {
            return;
        };
        while let Some(Some(payload)) = stop.run_until_cancelled(waiting.recv()).await {
            self.send(payload).await;
            if self.overflowed.swap(false, Ordering::SeqCst) {
                let number = self.connection();
                self.send(Payload::Connected { number, lost: true }).await;
            }
        }
        let left = async {
            while let Ok(payload) = waiting.try_recv() {
                self.send(payload).await;
            }
            let _ = self.client.flush().await;
        };
        let _ = timeout(LAST_WORDS, left).await;
    }

    /// Watches the connection and announces each new one to all replicas, this one included.
    async fn watch_connection(&self, dispatcher: &Dispatcher) {
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut announced = (0, Instant::now());
        let mut connected = Instant::now();
        let mut warned = false;
        loop {
            looks.tick().await;
            if self.dropped.swap(false, Ordering::SeqCst) {
                dispatcher.dispatch(&Notification::Lagged);
            }
            if !self.is_connected() {
                if !warned && connected.elapsed() > AWAY {
                    warned = true;
                    tracing::warn!(
                        "the bus cannot be reached: devices that are connected to other replicas cannot be reached either, and log lines are not accepted until it is back"
                    );
                }
                continue;
            }
            connected = Instant::now();
            if warned {
                warned = false;
                tracing::info!("connected to the bus");
            }
            let number = self.connection();
            // The announcement is repeated if it was lost with the connection.
            let is_lost = !self.receives_all() && announced.1.elapsed() > AWAY;
            if number != announced.0 || is_lost {
                announced = (number, Instant::now());
                let lost = number > 1;
                self.send(Payload::Connected { number, lost }).await;
            }
        }
    }

    /// Receives the messages of replicas.
    async fn receive(&self, dispatcher: &Dispatcher, mut messages: Subscriber) {
        while let Some(message) = messages.next().await {
            let Some(Envelope {
                from,
                what: payload,
            }) = Envelope::read(&message)
            else {
                tracing::warn!("ignored a bus message that is not from a replica");
                continue;
            };
            let own = from == self.name;
            match payload {
                Payload::Connected { number, lost } => {
                    if own && number == self.connection() {
                        let before = self.probed_connection.load(Ordering::SeqCst);
                        if before != number && number > 1 {
                            // Other replicas may have sent something between the two connections.
                            dispatcher.dispatch(&Notification::Lagged);
                        }
                        self.probed_connection.store(number, Ordering::SeqCst);
                    } else if !own && lost {
                        dispatcher.dispatch(&Notification::Lagged);
                    }
                }
                // It was dispatched here before it was sent.
                _ if own => {}
                Payload::Effects(effects) => {
                    dispatcher.dispatch(&Notification::Effects(effects.into()))
                }
                Payload::Arrived { device, at } => {
                    dispatcher.dispatch(&Notification::Arrived { device, at });
                }
            }
        }
    }

    /// Sends and receives until `stop`.
    pub(super) async fn run(&self, dispatcher: &Dispatcher, stop: &CancellationToken) {
        let messages = match self.client.subscribe(self.subjects.notifications()).await {
            Ok(messages) => messages,
            Err(error) => {
                tracing::error!("cannot receive messages of other replicas: {error}");
                return;
            }
        };
        tokio::select! {
            () = self.send_queued(stop) => {}
            // Sending may wait for a connection that is never established.
            () = async { stop.cancelled().await; sleep(2 * LAST_WORDS).await } => {}
            () = self.watch_connection(dispatcher) => {}
            () = self.receive(dispatcher, messages) => {}
        }
    }
}

/// Handles events of the connection.
fn on_event(event: &Event, dropped: &AtomicBool) {
    match event {
        Event::SlowConsumer(_) => {
            tracing::warn!(
                "the bus sends more than this replica reads, so it will read again what it missed"
            );
            dropped.store(true, Ordering::SeqCst);
        }
        Event::ServerError(error) => tracing::warn!("the NATS server reported an error: {error}"),
        // Sent with each attempt; that the bus is down is logged only once.
        other => tracing::debug!("the bus: {other}"),
    }
}

/// Parses the servers of an address: `nats://[user:password@]host[:port][,…]`, or `tls://…`.
fn servers(url: &str) -> Result<Vec<ServerAddr>> {
    let Some((scheme @ ("nats" | "tls"), rest)) = url.split_once("://") else {
        bail!("the address of the bus begins with `nats://` or `tls://`");
    };
    let each = rest.split(',').map(|server| {
        let server = server.trim();
        let server = match server.split_once("://") {
            Some(_) => server.to_owned(),
            None => format!("{scheme}://{server}"),
        };
        let address: ServerAddr = server.parse().ok()?;
        let valid = matches!(address.scheme(), "nats" | "tls") && !address.host().is_empty();
        valid.then_some(address)
    });
    let servers: Option<Vec<ServerAddr>> = each.collect();
    // The address may contain a password, so it is not shown.
    servers.context("the address of the bus is invalid; write it as `nats://user:password@host:4222,host2:4222`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_one_server_or_several() {
        for (url, expected) in [
            ("nats://one", vec!["nats://one"]),
            (
                "nats://u:p@one:1,two:2",
                vec!["nats://u:p@one:1", "nats://two:2"],
            ),
            ("tls://one, nats://two", vec!["tls://one", "nats://two"]),
        ] {
            let found = servers(url).expect(url);
            let expected: Vec<ServerAddr> = expected
                .iter()
                .map(|one| one.parse().expect("an address"))
                .collect();
            assert_eq!(found, expected, "{url}");
        }
        for url in [
            "",
            "one:4222",
            "http://one",
            "nats://",
            "nats://one,,two",
            "nats://one,ws://two",
        ] {
            let why = servers(url).expect_err(url).to_string();
            assert!(why.contains("nats://"), "{why}");
        }
    }
}
