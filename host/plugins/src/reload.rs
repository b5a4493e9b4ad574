//! The task that reloads changed plugins.

use std::future;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::actions::Actions;
use crate::events::Events;
use crate::hardware::gpio_lines::GpioLines;
use crate::loader::Loader;
use crate::recent_lines::RecentLines;
use crate::table::Table;
use crate::watch::Watch;

/// Installs a new table whenever something has changed, or a changed file was read or compiled.
pub(crate) struct Reload {
    pub(crate) table: watch::Sender<Arc<Table>>,
    pub(crate) actions: Actions,
    pub(crate) events: Events,
    pub(crate) gpio_lines: Arc<GpioLines>,
    pub(crate) loader: Loader,
    pub(crate) recent: RecentLines,
    pub(crate) busy_since: Arc<Mutex<Option<Instant>>>,
}

impl Reload {
    pub(crate) async fn run(mut self, mut watch: Option<Watch>, changed: Arc<Notify>) {
        self.loader.look();
        loop {
            self.publish();
            if !self.loader.is_busy() {
                self.loader.expect_writers();
            }
            let deadline = self.loader.deadline_of_writers();
            tokio::select! {
                () = changed.notified() => {
                    if let Some(Err(error)) = watch.as_mut().map(Watch::follow) {
                        tracing::error!("some changes of plugins and policy are not noticed: {error}");
                    }
                    self.loader.look();
                }
                () = self.loader.progress(), if self.loader.is_busy() => {}
                () = reached(deadline) => self.loader.look(),
            }
        }
    }

    fn publish(&mut self) {
        let before = Arc::clone(&self.table.borrow());
        let next = self.loader.table(&before);
        self.actions.set_providers(&next.providers, next.serving());
        self.events
            .set_plugins(next.serving(), self.loader.starts());
        self.gpio_lines.set_granted(next.gpio_lines());
        let names = next.names();
        self.recent.retain(|plugin| names.contains(plugin));
        self.table.send_replace(Arc::new(next));
        drop(before);
        let mut busy_since = self.busy_since.lock();
        *busy_since = self
            .loader
            .is_busy()
            .then(|| busy_since.unwrap_or_else(Instant::now));
    }
}

/// Waits until then; forever if there is no deadline.
async fn reached(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => future::pending().await,
    }
}
