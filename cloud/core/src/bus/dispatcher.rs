//! Delivers notifications within this program: to listeners at once, to subscribers as they read.

use std::sync::Arc;

use data::Effect;
use parking_lot::RwLock;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

/// Capacity of a subscriber's queue; a slower subscriber receives [`Notification::Lagged`].
pub(super) const CAPACITY: usize = 1024;

/// What the bus reports to listeners and subscribers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notification {
    /// A committed transaction of some replica had these effects.
    Effects(Arc<[Effect]>),
    /// A device opened a tunnel at another replica, at this time (milliseconds since the epoch). Reported only to
    /// listeners: subscribers show nothing that depends on it, and many devices arrive at once.
    Arrived { device: i64, at: i64 },
    /// Notifications may have been lost: cached data may be outdated.
    Lagged,
}

/// Called with each notification.
type Listener = Box<dyn Fn(&Notification) + Send + Sync>;

/// The listeners and subscribers of this program.
pub(super) struct Dispatcher {
    listeners: RwLock<Vec<Listener>>,
    subscribers: broadcast::Sender<Notification>,
    /// How often notifications may have been lost.
    lagged: watch::Sender<u64>,
}

impl Default for Dispatcher {
    fn default() -> Self {
        Dispatcher {
            listeners: RwLock::default(),
            subscribers: broadcast::channel(CAPACITY).0,
            lagged: watch::Sender::default(),
        }
    }
}

impl Dispatcher {
    pub(super) fn add_listener(&self, listener: Listener) {
        self.listeners.write().push(listener);
    }

    pub(super) fn subscribe(&self) -> Subscription {
        Subscription {
            notifications: self.subscribers.subscribe(),
        }
    }

    pub(super) fn lagged(&self) -> watch::Receiver<u64> {
        self.lagged.subscribe()
    }

    /// Delivers a notification, wherever it comes from.
    pub(super) fn dispatch(&self, notification: &Notification) {
        if *notification == Notification::Lagged {
            self.lagged.send_modify(|times| *times += 1);
        }
        for listener in &*self.listeners.read() {
            listener(notification);
        }
        if matches!(notification, Notification::Arrived { .. }) {
            return;
        }
        // An error means that there are no subscribers.
        let _ = self.subscribers.send(notification.clone());
    }
}

/// Notifications as they arrive. Dropping it ends the subscription.
pub struct Subscription {
    notifications: broadcast::Receiver<Notification>,
}

impl Subscription {
    /// Returns the next notification; none at the end. Nothing is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<Notification> {
        match self.notifications.recv().await {
            Ok(notification) => Some(notification),
            Err(RecvError::Lagged(_)) => Some(Notification::Lagged),
            Err(RecvError::Closed) => None,
        }
    }
}
