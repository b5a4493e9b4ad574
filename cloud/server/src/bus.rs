//! What the replicas of this cloud tell and ask each other. Within one program that is a call; what every
//! replica has to learn, and what only one of them can do, goes through here, so that it works where there are
//! several.
//!
//! ```text
//! effects of writes ──► tell ──► listeners here, and at every other replica
//! a device's tunnel ──► take_calls ◄── call ── a replica that is to ask the device
//! lines of devices      a stream of the server's, by device (`device/logs/stream.rs`)
//! ```
//!
//! Whoever keeps something that writes may make untrue [listens](Bus::listen) for as long as the program runs,
//! and has heard before the write is answered. Whoever looks for a while, such as a page that shows what
//! changes, [subscribes](Bus::subscribe) and reads at its own pace.

mod call;
mod nats;
mod pipe;
mod said;
mod subjects;

use std::sync::{Arc, PoisonError, RwLock};

use anyhow::Result;
use data::Effect;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

pub(crate) use call::{Ask, NO_ANSWER, NotReached};
pub(crate) use nats::Nats;
use said::What;

use crate::cloud::Shared;

/// News that one who reads slowly may be behind by; who is behind by more has [missed](News::Missed) some.
const BEHIND: usize = 1024;

/// What there is to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum News {
    /// A transaction of some replica was committed and changed this.
    Effects(Arc<[Effect]>),
    /// Something may have been changed that is not told any more: whatever one keeps may be untrue.
    Missed,
}

/// Who hears of news at once.
type Listener = Box<dyn Fn(&News) + Send + Sync>;

/// The way to every replica, this one included.
pub(crate) struct Bus {
    listeners: RwLock<Vec<Listener>>,
    subscribers: broadcast::Sender<News>,
    /// How often something was missed.
    missed: watch::Sender<u64>,
    /// The way to other machines.
    nats: Option<Arc<Nats>>,
}

impl Bus {
    /// One that reaches this program alone.
    pub(crate) fn in_process() -> Self {
        Bus {
            listeners: RwLock::default(),
            subscribers: broadcast::channel(BEHIND).0,
            missed: watch::Sender::default(),
            nats: None,
        }
    }

    /// One that reaches every replica with the same server and prefix, now or as soon as there is a
    /// connection.
    ///
    /// # Errors
    /// Where `url` is no address of a server.
    pub(crate) async fn between_machines(url: &str, prefix: &str) -> Result<Self> {
        Ok(Bus {
            nats: Some(Arc::new(Nats::connect(url, prefix).await?)),
            ..Bus::in_process()
        })
    }

    /// Tells and hears until `stop`; ends when everything is told.
    pub(crate) async fn run(&self, cloud: &Shared, stop: CancellationToken) {
        match &self.nats {
            Some(nats) => nats.run(cloud, &stop).await,
            None => stop.cancelled().await,
        }
    }

    /// The server between machines, for what is kept there.
    pub(crate) fn nats(&self) -> Option<&Arc<Nats>> {
        self.nats.as_ref()
    }

    /// Whether devices may be connected to other replicas.
    pub(crate) fn has_others(&self) -> bool {
        self.nats.is_some()
    }

    /// Whether whatever other replicas tell is heard at the moment. Where it is not, nothing that they may
    /// change can be remembered.
    pub(crate) fn hears_all(&self) -> bool {
        self.nats.as_ref().is_none_or(|nats| nats.hears_all())
    }

    /// Has `listener` told of the news of any replica, as long as the program runs. It must not block.
    pub(crate) fn listen(&self, listener: impl Fn(&News) + Send + Sync + 'static) {
        let mut listeners = self
            .listeners
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        listeners.push(Box::new(listener));
    }

    /// The news of any replica from now on, until it is dropped. Nobody waits for who reads slowly.
    pub(crate) fn subscribe(&self) -> Subscription {
        Subscription {
            news: self.subscribers.subscribe(),
        }
    }

    /// Tells everybody what a transaction changed. Within this program they have heard of it when this returns.
    pub(crate) fn tell(&self, effects: &[Effect]) {
        self.heard(&News::Effects(effects.into()));
        if let Some(nats) = &self.nats {
            for piece in said::pieces(effects) {
                nats.tell(piece);
            }
        }
    }

    /// Changes with each time that something was missed: whoever shows what others tell looks again.
    pub(crate) fn missed(&self) -> watch::Receiver<u64> {
        self.missed.subscribe()
    }

    /// A device opened a tunnel to this replica, at this time (milliseconds since the epoch).
    pub(crate) fn tell_arrival(&self, device: i64, at: i64) {
        if let Some(nats) = &self.nats {
            nats.tell(What::Arrived { device, at });
        }
    }

    /// Has other replicas ask a device through its tunnel here, until `ending`, and then until what is under way
    /// is done. Dropping it cuts that off.
    pub(crate) async fn take_calls(&self, device: i64, ask: Ask, ending: CancellationToken) {
        if let Some(nats) = &self.nats {
            call::take(nats, device, ask, &ending).await;
        }
        ending.cancelled().await;
    }

    /// How to ask a device that is connected to another replica.
    ///
    /// # Errors
    /// Where it is connected to none, or cannot be asked now.
    pub(crate) async fn call(&self, device: i64) -> Result<Ask, NotReached> {
        match &self.nats {
            Some(nats) => call::open(nats, device).await,
            None => Err(NotReached::Away),
        }
    }

    /// There is news, wherever it comes from.
    fn heard(&self, news: &News) {
        if *news == News::Missed {
            self.missed.send_modify(|times| *times += 1);
        }
        let listeners = self
            .listeners
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        for listener in &*listeners {
            listener(news);
        }
        // An error says that nobody subscribes.
        let _ = self.subscribers.send(news.clone());
    }
}

/// News as they come. Dropping it ends it.
pub(crate) struct Subscription {
    news: broadcast::Receiver<News>,
}

impl Subscription {
    /// What comes next; none when nothing will. Nothing is lost where the future is dropped.
    pub(crate) async fn next(&mut self) -> Option<News> {
        match self.news.recv().await {
            Ok(news) => Some(news),
            Err(RecvError::Lagged(_)) => Some(News::Missed),
            Err(RecvError::Closed) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_subscribes_hears_what_is_told_and_who_is_too_slow_that_something_was_missed() {
        let bus = Bus::in_process();
        bus.tell(&[Effect::DevicesChanged(vec![1])]);
        let (mut one, mut slow) = (bus.subscribe(), bus.subscribe());
        bus.tell(&[Effect::DevicesChanged(vec![2])]);
        let second = News::Effects([Effect::DevicesChanged(vec![2])].into());
        assert_eq!(one.next().await, Some(second.clone()));
        for _ in 0..=BEHIND {
            bus.tell(&[]);
            one.next().await;
        }
        assert_eq!(slow.next().await, Some(News::Missed));
        assert_eq!(slow.next().await, Some(News::Effects([].into())));
        drop(bus);
        assert_eq!(one.next().await, None);
    }
}
