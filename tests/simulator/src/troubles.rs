//! Failures of the devices: the log events of the link, counted by where they are logged.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

/// The link's crate.
const LINK: &str = "cloud_link";
/// Logs failures only at debug level, since a device works without it.
const TUNNEL: &str = "cloud_link::tunnel";

/// Counts warnings of devices. Clones count together.
#[derive(Debug, Clone, Default)]
pub struct Troubles(Arc<Mutex<BTreeMap<Place, Trouble>>>);

/// A line of the source.
type Place = (&'static str, u32);

/// One kind of failure.
#[derive(Debug, Clone, Default)]
pub struct Trouble {
    /// The number of times.
    pub times: u64,
    /// The latest message.
    pub message: String,
}

impl Troubles {
    fn held(&self) -> MutexGuard<'_, BTreeMap<Place, Trouble>> {
        self.0.lock()
    }

    /// Returns how many failures there were.
    #[must_use]
    pub fn times(&self) -> u64 {
        self.held().values().map(|trouble| trouble.times).sum()
    }

    /// Returns each kind of failure.
    #[must_use]
    pub fn all(&self) -> Vec<Trouble> {
        self.held().values().cloned().collect()
    }

    fn concern(metadata: &Metadata<'_>) -> bool {
        let level = *metadata.level();
        match metadata.target() {
            TUNNEL => level <= Level::WARN || level == Level::DEBUG,
            target => target.starts_with(LINK) && level <= Level::WARN,
        }
    }
}

impl<S: Subscriber> Layer<S> for Troubles {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        if !Troubles::concern(metadata) {
            return;
        }
        let place = (metadata.target(), metadata.line().unwrap_or_default());
        let mut held = self.held();
        let trouble = held.entry(place).or_default();
        trouble.times += 1;
        trouble.message.clear();
        event.record(&mut Message(&mut trouble.message));
    }
}

/// The text of an event.
struct Message<'a>(&'a mut String);

impl Visit for Message<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            *self.0 = format!("{value:?}");
        }
    }
}
