//! Places for the requests of plugins that are under way. One plugin gets at most half of them, so that the other half is
//! left for others: a host that never answers keeps a request for a minute.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use plugins::HTTP_REQUESTS;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The places of one plugin.
const OF_ONE: usize = HTTP_REQUESTS / 2;

/// The places of all plugins.
pub(crate) struct RequestPlaces {
    all: Arc<Semaphore>,
    /// By the names of plugins, while they have or wait for a place.
    shares: Mutex<HashMap<Arc<str>, Weak<Semaphore>>>,
}

/// A place, until it is dropped.
pub(crate) struct RequestPlace {
    _of_all: OwnedSemaphorePermit,
    _of_plugin: OwnedSemaphorePermit,
}

impl Default for RequestPlaces {
    fn default() -> Self {
        RequestPlaces {
            all: Arc::new(Semaphore::new(HTTP_REQUESTS)),
            shares: Mutex::default(),
        }
    }
}

impl RequestPlaces {
    /// Waits for a place. Who waits for more than a plugin's share waits behind the plugin's own requests alone. Returns
    /// `None` if there are no places any more.
    pub(crate) async fn wait(&self, plugin: &Arc<str>) -> Option<RequestPlace> {
        let of_plugin = self.share(plugin).acquire_owned().await.ok()?;
        let of_all = Arc::clone(&self.all).acquire_owned().await.ok()?;
        Some(RequestPlace {
            _of_all: of_all,
            _of_plugin: of_plugin,
        })
    }

    /// Takes a place without waiting, or says which limit is reached.
    pub(crate) fn take(&self, plugin: &Arc<str>) -> Result<RequestPlace, String> {
        let of_plugin = self.share(plugin).try_acquire_owned();
        let of_plugin = of_plugin.map_err(|_| {
            format!("the plugin `{plugin}` has {OF_ONE} requests in progress, the maximum")
        })?;
        let of_all = Arc::clone(&self.all).try_acquire_owned();
        let of_all = of_all.map_err(|_| {
            format!(
                "plugins have {HTTP_REQUESTS} requests in progress, the maximum for all of them"
            )
        })?;
        Ok(RequestPlace {
            _of_all: of_all,
            _of_plugin: of_plugin,
        })
    }

    fn share(&self, plugin: &Arc<str>) -> Arc<Semaphore> {
        let mut shares = self.shares.lock();
        if let Some(share) = shares.get(plugin).and_then(Weak::upgrade) {
            return share;
        }
        shares.retain(|_, share| share.strong_count() > 0);
        let share = Arc::new(Semaphore::new(OF_ONE));
        shares.insert(Arc::clone(plugin), Arc::downgrade(&share));
        share
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn one_plugin_takes_half_of_the_places_and_the_other_half_is_left() {
        let places = RequestPlaces::default();
        let [greedy, other, third]: [Arc<str>; 3] = ["greedy", "other", "third"].map(Arc::from);
        let mut permits: Vec<_> = (0..OF_ONE).map(|_| places.take(&greedy).unwrap()).collect();
        let refused = places.take(&greedy).err().unwrap();
        assert!(refused.contains("`greedy` has 8 requests"), "{refused}");
        permits.extend((0..OF_ONE).map(|_| places.take(&other).unwrap()));
        let refused = places.take(&third).err().unwrap();
        assert!(refused.contains("plugins have 16 requests"), "{refused}");
        // The first is one of `greedy`.
        permits.remove(0);
        assert!(places.take(&third).is_ok());
        drop(permits);
        assert!(places.take(&third).is_ok());
        assert_eq!(places.shares.lock().len(), 1);
    }

    #[test]
    fn requests_beyond_a_plugins_share_wait_in_nobody_elses_way() {
        let places = RequestPlaces::default();
        let (greedy, other): (Arc<str>, Arc<str>) = (Arc::from("greedy"), Arc::from("other"));
        let mut begun: Vec<_> = (0..100)
            .map(|_| places.wait(&greedy).boxed_local())
            .collect();
        let under_way: Vec<_> = begun.iter_mut().map(|one| one.now_or_never()).collect();
        let count = under_way.iter().flatten().count();
        assert_eq!(count, OF_ONE);
        for _ in 0..OF_ONE {
            let place = places.wait(&other).now_or_never().flatten();
            assert!(place.is_some());
        }
        drop(under_way);
        let next = begun.pop().and_then(|mut one| (&mut one).now_or_never());
        assert!(next.is_none(), "those before it are first");
    }
}
