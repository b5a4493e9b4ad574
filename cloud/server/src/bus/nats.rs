//! The bus between machines: NATS.
//!
//! What is told goes to every replica, the one that tells it included: having heard its own voice, a replica
//! knows that it hears the others. As long as it has not since it was connected (again), it cannot know what
//! it missed, and whoever remembers something has to ask the database.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use async_nats::connection::State;
use async_nats::{Client, ConnectOptions, Event, ServerAddr, Subscriber};
use futures::StreamExt as _;
use percent_encoding::percent_decode_str;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::News;
use super::said::{Said, What};
use super::subjects::Subjects;
use crate::cloud::Shared;
use crate::session::random_text;

/// Messages that wait for the connection; when there are more, others are told that some were lost.
const WAITING: usize = 4096;
/// Messages of one subscription that wait to be read; more are dropped, which who reads finds out.
const UNREAD: usize = 4096;
/// Between two looks at whether the server is still there.
const PING: Duration = Duration::from_secs(10);
/// Between two looks at the connection.
const LOOK: Duration = Duration::from_millis(100);
/// How long it may be away until that is said.
const AWAY: Duration = Duration::from_secs(1);
/// How long what is left to tell may take at the end.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A connection to a server, or to one of several.
pub(crate) struct Nats {
    client: Client,
    subjects: Subjects,
    /// This replica, as what it tells names it.
    name: String,
    to_tell: mpsc::Sender<What>,
    waiting: Mutex<Option<mpsc::Receiver<What>>>,
    /// There was no room for something.
    overflowed: AtomicBool,
    /// For the how-manyth connection this replica has heard its own voice.
    heard_itself: AtomicU64,
    /// Something came faster than it was read, and was dropped.
    dropped: Arc<AtomicBool>,
}

impl Nats {
    /// Connects to `url`, now or as soon as it can.
    ///
    /// # Errors
    /// Where it is no address.
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
                noted(&event, &drops);
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
        let (to_tell, waiting) = mpsc::channel(WAITING);
        Ok(Nats {
            client,
            subjects: Subjects::under(prefix),
            name: random_text(8)?,
            to_tell,
            waiting: Mutex::new(Some(waiting)),
            overflowed: AtomicBool::default(),
            heard_itself: AtomicU64::default(),
            dropped,
        })
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn subjects(&self) -> &Subjects {
        &self.subjects
    }

    /// Whether there is a connection at the moment.
    pub(crate) fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    /// The how-manyth connection it is.
    fn connection(&self) -> u64 {
        let statistics = self.client.statistics();
        statistics.connects.load(Ordering::SeqCst)
    }

    /// Whether whatever others tell is heard.
    pub(super) fn hears_all(&self) -> bool {
        self.is_connected() && self.heard_itself.load(Ordering::SeqCst) == self.connection()
    }

    /// Tells the others, as soon as there is a connection.
    pub(super) fn tell(&self, what: What) {
        if self.to_tell.try_send(what).is_err() {
            self.overflowed.store(true, Ordering::SeqCst);
        }
    }

    async fn say(&self, what: What) {
        let said = Said {
            from: self.name.clone(),
            what,
        };
        let sent = match serde_json::to_vec(&said) {
            Ok(text) => self
                .client
                .publish(self.subjects.news(), text.into())
                .await
                .map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = sent {
            tracing::warn!("other replicas cannot be told of a change: {error}");
        }
    }

    /// Says what waits, until `stop` and then what is left.
    async fn saying(&self, stop: &CancellationToken) {
        let waiting = self
            .waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(mut waiting) = waiting else { return };
        while let Some(Some(what)) = stop.run_until_cancelled(waiting.recv()).await {
            self.say(what).await;
            if self.overflowed.swap(false, Ordering::SeqCst) {
                let number = self.connection();
                self.say(What::Connected { number, lost: true }).await;
            }
        }
        let left = async {
            while let Ok(what) = waiting.try_recv() {
                self.say(what).await;
            }
            let _ = self.client.flush().await;
        };
        let _ = timeout(LAST_WORDS, left).await;
    }

    /// Watches the connection: each new one is announced, and heard of by this replica itself.
    async fn watching(&self, cloud: &Shared) {
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut announced = (0, Instant::now());
        let mut connected = Instant::now();
        let mut warned = false;
        loop {
            looks.tick().await;
            if self.dropped.swap(false, Ordering::SeqCst) {
                cloud.bus.heard(&News::Missed);
            }
            if !self.is_connected() {
                if !warned && connected.elapsed() > AWAY {
                    warned = true;
                    tracing::warn!(
                        "the bus is away: devices that are connected to other replicas are not reached, and log \
                         lines are not taken until it is back"
                    );
                }
                continue;
            }
            connected = Instant::now();
            if warned {
                warned = false;
                tracing::info!("the bus is there (again)");
            }
            let number = self.connection();
            // Said once more where it was lost with the connection.
            let unheard = !self.hears_all() && announced.1.elapsed() > AWAY;
            if number != announced.0 || unheard {
                announced = (number, Instant::now());
                let lost = number > 1;
                self.say(What::Connected { number, lost }).await;
            }
        }
    }

    /// Hears what replicas tell.
    async fn hearing(&self, cloud: &Shared, mut messages: Subscriber) {
        while let Some(message) = messages.next().await {
            let Some(Said { from, what }) = Said::read(&message) else {
                tracing::warn!(
                    "something on the bus is no message of a replica, and is passed over"
                );
                continue;
            };
            let own = from == self.name;
            match what {
                What::Connected { number, lost } => {
                    if own && number == self.connection() {
                        let before = self.heard_itself.load(Ordering::SeqCst);
                        if before != number && number > 1 {
                            // Between the two, others may have told something.
                            cloud.bus.heard(&News::Missed);
                        }
                        self.heard_itself.store(number, Ordering::SeqCst);
                    } else if !own && lost {
                        cloud.bus.heard(&News::Missed);
                    }
                }
                // It has heard of it before it told the others.
                _ if own => {}
                What::Effects(effects) => cloud.bus.heard(&News::Effects(effects.into())),
                What::Arrived { device, at } => cloud.reach.arrived_elsewhere(device, at),
            }
        }
    }

    /// Tells and hears until `stop`.
    pub(super) async fn run(&self, cloud: &Shared, stop: &CancellationToken) {
        let messages = match self.client.subscribe(self.subjects.news()).await {
            Ok(messages) => messages,
            Err(error) => {
                tracing::error!("nothing of other replicas will be heard: {error}");
                return;
            }
        };
        tokio::select! {
            () = self.saying(stop) => {}
            // It may wait for a connection that does not come.
            () = async { stop.cancelled().await; sleep(2 * LAST_WORDS).await } => {}
            () = self.watching(cloud) => {}
            () = self.hearing(cloud, messages) => {}
        }
    }
}

/// What the connection tells of itself.
fn noted(event: &Event, dropped: &AtomicBool) {
    match event {
        Event::SlowConsumer(_) => {
            tracing::warn!("the bus tells more than is read; what was missed is looked up");
            dropped.store(true, Ordering::SeqCst);
        }
        Event::ServerError(error) => tracing::warn!("the bus refuses something: {error}"),
        // It comes with each try; that the bus is away is said once.
        other => tracing::debug!("the bus: {other}"),
    }
}

/// The servers of an address: `nats://[user:password@]host[:port][,…]`, or `tls://…`.
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
        let known = matches!(address.scheme(), "nats" | "tls") && !address.host().is_empty();
        known.then_some(address)
    });
    let servers: Option<Vec<ServerAddr>> = each.collect();
    // The address may have a password in it, and is not shown.
    servers.context("the address of the bus is not right; it is written `nats://user:password@host:4222,host2:4222`")
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
