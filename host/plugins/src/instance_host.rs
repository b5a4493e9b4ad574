//! The host, as one instance has it.

use std::sync::Arc;

use plugin_protocol::{Call, CallerScope, Handle};

use crate::holdings::Holdings;
use crate::origin::Origin;
use crate::provision::journal::{JournalBody, JournalSource};
use crate::surroundings::Surroundings;

/// What stands behind one instance. Cloning shares it.
#[derive(Clone)]
pub(crate) struct InstanceHost {
    pub(crate) around: Arc<Surroundings>,
    holdings: Arc<Holdings>,
    /// Where the call comes from that the instance serves.
    pub(crate) origin: Arc<Origin>,
}

impl InstanceHost {
    pub(crate) fn new(around: Arc<Surroundings>) -> InstanceHost {
        InstanceHost {
            around,
            holdings: Arc::default(),
            origin: Arc::new(Origin::outside(CallerScope::NoCall)),
        }
    }

    /// Has the host do what is asked for. An error is for a call that is not the plugin's to make, and traps.
    pub(crate) async fn ask<C: Call>(&self, call: C) -> wasmtime::Result<C::Answer> {
        let answer = self
            .around
            .provide(&self.holdings, &self.origin, call.into())
            .await?;
        C::answer(answer)
            .ok_or_else(|| wasmtime::Error::msg("the host answered something else than was asked"))
    }

    /// Lets go of what the instance holds by this handle.
    pub(crate) fn release(&self, handle: Handle) {
        self.holdings.release(handle);
    }

    /// What a reader of the journal gives that the instance holds, after the `used` bytes that it has read.
    pub(crate) fn journal_body(&self, reader: Handle, used: u64) -> Option<JournalBody> {
        let source: Arc<JournalSource> = self.holdings.journal(reader).ok()?;
        Some(JournalBody::new(
            source,
            used,
            Arc::clone(&self.around.name),
        ))
    }
}
