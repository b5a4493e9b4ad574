//! What the replicas of this cloud tell each other. Within one program that is a call; what every replica has
//! to learn goes through here, so that it does where there are several.

use std::sync::{PoisonError, RwLock};

use data::Effect;

/// Who hears what transactions changed.
type Listener = Box<dyn Fn(&[Effect]) + Send + Sync>;

/// The way to every replica, this one included.
#[derive(Default)]
pub(crate) struct Bus {
    listeners: RwLock<Vec<Listener>>,
}

impl Bus {
    /// One that reaches this program alone.
    pub(crate) fn in_process() -> Self {
        Bus::default()
    }

    /// Has `listener` told of what transactions of any replica changed. It must not block.
    pub(crate) fn listen(&self, listener: impl Fn(&[Effect]) + Send + Sync + 'static) {
        let mut listeners = self
            .listeners
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        listeners.push(Box::new(listener));
    }

    /// Tells everybody. Within this program they have heard of it when this returns.
    pub(crate) fn tell(&self, effects: &[Effect]) {
        let listeners = self
            .listeners
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        for listener in &*listeners {
            listener(effects);
        }
    }
}
