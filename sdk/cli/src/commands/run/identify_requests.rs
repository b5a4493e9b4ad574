//! `POST /v1/blink`: makes the device identify itself, with the plugin if it provides `identify`, and otherwise as the
//! device file says, in the place of the plugin that a device has for that.

use parking_lot::Mutex;
use plugin_manifest::{Capability, Manifest};
use plugin_test_host::RunningHost;
use tokio::task::JoinSet;

use crate::device_file::IdentifyProvider;
use crate::output::note_line;

/// Starts what identifies a device.
pub(crate) struct IdentifyRequests {
    /// The answer of the device file; `None` if the plugin itself identifies the device.
    provider: Option<IdentifyProvider>,
    /// Whether the plugin asks for the capability.
    has_capability: bool,
    /// The run of the provider in the device file: one at a time, as on a device.
    run: Mutex<JoinSet<()>>,
}

impl IdentifyRequests {
    pub(super) fn new(provider: Option<IdentifyProvider>, manifest: &Manifest) -> IdentifyRequests {
        IdentifyRequests {
            provider,
            has_capability: manifest.asks_for(Capability::Identify),
            run: Mutex::default(),
        }
    }

    /// Makes the device identify itself in the background. The author sees in the terminal what a person sees on a device.
    pub(super) fn start(&self, host: &RunningHost) {
        let Some(provider) = &self.provider else {
            host.identify();
            return;
        };
        if !self.has_capability {
            note_line(
                "nothing shows which device this is: the plugin neither provides `identify` nor asks for it",
            );
            return;
        }
        let mut run = self.run.lock();
        while run.try_join_next().is_some() {}
        if !run.is_empty() {
            return;
        }
        let provider = provider.clone();
        run.spawn(async move {
            match provider.identify().await {
                Ok(()) => note_line("the device has identified itself, as the device file says"),
                Err(reason) => {
                    note_line(format_args!("the device did not identify itself: {reason}"));
                }
            }
        });
    }
}
