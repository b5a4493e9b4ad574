//! What the replicas of this cloud tell each other. Within one program that is a call; what every replica has
//! to learn goes through here, so that it does where there are several.
//!
//! Whoever keeps something that writes may make untrue [listens](Bus::listen) for as long as the program runs,
//! and has heard before the write is answered. Whoever looks for a while, such as a page that shows what
//! changes, [subscribes](Bus::subscribe) and reads at its own pace.

use std::sync::{Arc, PoisonError, RwLock};

use data::Effect;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

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
}

impl Bus {
    /// One that reaches this program alone.
    pub(crate) fn in_process() -> Self {
        Bus {
            listeners: RwLock::default(),
            subscribers: broadcast::channel(BEHIND).0,
        }
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
    }

    /// There is news, wherever it comes from.
    fn heard(&self, news: &News) {
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
