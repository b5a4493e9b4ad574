//! What went wrong with the devices: what the link logs, counted by where it logs it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

/// The link's crate.
const LINK: &str = "cloud_link";
/// Says only in detail that it failed, since a device lives on without it.
const TUNNEL: &str = "cloud_link::tunnel";

/// Counts what devices warn of. Clones count together.
#[derive(Debug, Clone, Default)]
pub struct Troubles(Arc<Mutex<BTreeMap<Place, Trouble>>>);

/// A line of the source.
type Place = (&'static str, u32);

/// One kind of it.
#[derive(Debug, Clone, Default)]
pub struct Trouble {
    /// How often.
    pub times: u64,
    /// What was said the last time.
    pub said: String,
}

impl Troubles {
    fn held(&self) -> MutexGuard<'_, BTreeMap<Place, Trouble>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How often anything went wrong.
    #[must_use]
    pub fn times(&self) -> u64 {
        self.held().values().map(|trouble| trouble.times).sum()
    }

    /// Each kind.
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
        trouble.said.clear();
        event.record(&mut Message(&mut trouble.said));
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
