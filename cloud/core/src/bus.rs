//! Communication between the replicas of this cloud. Within one program, that is a function call; what every replica
//! must learn, and what only one of them can do, goes through here, so that it works with several replicas.
//!
//! ```text
//! effects of writes ──► publish ──► listeners here, and at every other replica
//! a device's tunnel ──► take_calls ◄── call ── a replica with a request for the device
//! lines of devices      a stream of the server's, by device (`device/logs/stream.rs`)
//! ```
//!
//! Caches that a write can invalidate register a [listener](Bus::listen) for the life of the process, which is called
//! before the write is answered. Code that follows changes for a while, such as an open page,
//! [subscribes](Bus::subscribe) and reads at its own pace.

mod call;
mod dispatcher;
mod envelope;
mod nats;
mod pipe;
mod subjects;

use std::sync::Arc;

use anyhow::Result;
use data::Effect;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub(crate) use call::NO_ANSWER;
pub use call::{CallError, DeviceClient};
use dispatcher::Dispatcher;
pub use dispatcher::{Notification, Subscription};
use envelope::Payload;
pub use nats::Nats;

/// Connects to every replica, this one included. Clones share one bus.
#[derive(Clone)]
pub struct Bus {
    dispatcher: Arc<Dispatcher>,
    /// The connection to other machines.
    nats: Option<Arc<Nats>>,
}

impl Bus {
    /// Creates a bus that reaches only this program.
    pub fn in_process() -> Self {
        Bus {
            dispatcher: Arc::default(),
            nats: None,
        }
    }

    /// Creates a bus that reaches every replica with the same server and prefix, now or as soon as there is a
    /// connection.
    ///
    /// # Errors
    /// If `url` is not an address of a server.
    pub async fn between_machines(url: &str, prefix: &str) -> Result<Self> {
        Ok(Bus {
            nats: Some(Arc::new(Nats::connect(url, prefix).await?)),
            ..Bus::in_process()
        })
    }

    /// Sends and receives until `stop`; ends when everything has been sent.
    pub async fn run(&self, stop: CancellationToken) {
        match &self.nats {
            Some(nats) => nats.run(&self.dispatcher, &stop).await,
            None => stop.cancelled().await,
        }
    }

    /// Returns the server between machines, for data stored there.
    pub fn nats(&self) -> Option<&Arc<Nats>> {
        self.nats.as_ref()
    }

    /// Whether devices may be connected to other replicas.
    pub fn has_others(&self) -> bool {
        self.nats.is_some()
    }

    /// Whether messages of other replicas are received at the moment. If not, nothing that they may change can be
    /// cached.
    pub fn receives_all(&self) -> bool {
        self.nats.as_ref().is_none_or(|nats| nats.receives_all())
    }

    /// Calls `listener` with the notifications of any replica, for as long as the program runs. It must not block.
    pub fn listen(&self, listener: impl Fn(&Notification) + Send + Sync + 'static) {
        self.dispatcher.add_listener(Box::new(listener));
    }

    /// Subscribes to the notifications of any replica from now on, until the subscription is dropped. Slow readers
    /// delay nobody.
    pub fn subscribe(&self) -> Subscription {
        self.dispatcher.subscribe()
    }

    /// Announces the changes of a transaction to all replicas. Within this program, they have arrived when this
    /// returns.
    pub fn publish(&self, effects: &[Effect]) {
        self.dispatcher
            .dispatch(&Notification::Effects(effects.into()));
        if let Some(nats) = &self.nats {
            for piece in envelope::pieces(effects) {
                nats.publish(piece);
            }
        }
    }

    /// Changes whenever something was missed: code that shows other replicas' data then reads it again.
    pub(crate) fn lagged(&self) -> watch::Receiver<u64> {
        self.dispatcher.lagged()
    }

    /// Announces that a device opened a tunnel to this replica, at this time (milliseconds since the epoch).
    pub(crate) fn publish_arrival(&self, device: i64, at: i64) {
        if let Some(nats) = &self.nats {
            nats.publish(Payload::Arrived { device, at });
        }
    }

    /// Accepts other replicas' requests to a device through its tunnel here, until `ending`, then finishes the requests
    /// in progress. Dropping the future cuts them off.
    pub(crate) async fn take_calls(
        &self,
        device: i64,
        client: DeviceClient,
        ending: CancellationToken,
    ) {
        if let Some(nats) = &self.nats {
            call::take(nats, device, client, &ending).await;
        }
        ending.cancelled().await;
    }

    /// Returns a client for a device that is connected to another replica.
    ///
    /// # Errors
    /// If it is connected to none, or cannot be reached now.
    pub async fn call(&self, device: i64) -> Result<DeviceClient, CallError> {
        match &self.nats {
            Some(nats) => call::open(nats, device).await,
            None => Err(CallError::Away),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn subscribers_receive_notifications_and_slow_ones_learn_that_some_are_missing() {
        let bus = Bus::in_process();
        bus.publish(&[Effect::DevicesChanged(vec![1])]);
        let (mut one, mut slow) = (bus.subscribe(), bus.subscribe());
        bus.publish(&[Effect::DevicesChanged(vec![2])]);
        let second = Notification::Effects([Effect::DevicesChanged(vec![2])].into());
        assert_eq!(one.next().await, Some(second.clone()));
        for _ in 0..=dispatcher::CAPACITY {
            bus.publish(&[]);
            one.next().await;
        }
        assert_eq!(slow.next().await, Some(Notification::Lagged));
        assert_eq!(slow.next().await, Some(Notification::Effects([].into())));
        drop(bus);
        assert_eq!(one.next().await, None);
    }
}
