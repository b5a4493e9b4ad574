//! The host's journal.

use std::future::poll_fn;
use std::sync::Arc;

use plugin_protocol::{
    Handle, JournalError, JournalOpen, JournalOptions, JournalRead, Piece, Provide,
};

use super::InstanceCall;
use crate::holdings::HeldResource;
use crate::holdings::journal::{JournalPiece, JournalSource};
use crate::refusal::Refusal;

impl InstanceCall<'_> {
    async fn open_journal(&self, options: JournalOptions) -> Result<Handle, JournalError> {
        let plugin = self.plugin;
        let context = Arc::clone(plugin);
        let report = move |complaint: &str| {
            if context.may_log() {
                let plugin: &str = &context.name;
                tracing::warn!(plugin, "the journal command reported: {complaint}");
            }
        };
        let share = &plugin.share.journal;
        let reader = share.read(&to_host_options(options), report).await;
        let reader = reader.map_err(|error| {
            let message = error.to_string();
            match error {
                os::JournalError::Invalid { .. } => JournalError::Invalid(message),
                os::JournalError::Busy(limit) => JournalError::Busy(format!(
                    "plugins have {limit} of the journal, the maximum for all of them: try again later"
                )),
                os::JournalError::ShareBusy(limit) => JournalError::Busy(format!(
                    "the plugin `{}` has {limit} of the journal, the maximum: try again later",
                    plugin.name
                )),
                os::JournalError::Start { source, .. } => {
                    if plugin.may_log() {
                        tracing::error!(plugin = &*plugin.name, "{message}: {source}");
                    }
                    JournalError::Other(message)
                }
            }
        })?;
        let source = Arc::new(JournalSource::new(reader, Arc::clone(plugin)));
        self.holdings
            .add(HeldResource::Journal(source))
            .map_err(|_| JournalError::Other("too many readers at a time".to_owned()))
    }
}

impl Provide<JournalOpen, Refusal> for InstanceCall<'_> {
    async fn provide(
        &self,
        JournalOpen { options }: JournalOpen,
    ) -> Result<Result<Handle, JournalError>, Refusal> {
        Ok(self.open_journal(options).await)
    }
}

impl Provide<JournalRead, Refusal> for InstanceCall<'_> {
    async fn provide(&self, JournalRead { reader, used }: JournalRead) -> Result<Piece, Refusal> {
        let source = self.holdings.journal(reader)?;
        let piece = poll_fn(|context| source.poll_read(used, context)).await?;
        Ok(match piece {
            JournalPiece::Bytes(bytes) => Piece::Bytes(bytes.to_vec()),
            JournalPiece::End => Piece::End,
            JournalPiece::Broken => Piece::Broken,
        })
    }
}

fn to_host_options(options: JournalOptions) -> os::JournalOptions {
    os::JournalOptions {
        all: options.all,
        follow: options.follow,
        unit: options.unit,
        identifier: options.identifier,
        count: options.count,
        since: options.since,
        until: options.until,
        format: options.format,
    }
}
