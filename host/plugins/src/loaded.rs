//! One version of a plugin, ready to be called: checked, compiled and linked.

use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use device_types::PluginLogLevel;
use parking_lot::Mutex;
use plugin_protocol::text::{LONGEST, one_line};
use plugin_protocol::{
    ActionAnswer, ActionCall, Bound, Failure, GuestCode, GuestPlugin, Origin, PATIENCE, ServedCall,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::Instrument as _;

use crate::failure;
use crate::holdings::InstanceHoldings;
use crate::limits::Limits;
use crate::plugin_context::PluginContext;
use crate::signature::Signatures;
use plugin_manifest::Manifest;

/// A version of a plugin that can be called.
pub(crate) struct LoadedPlugin {
    pub(crate) manifest: Manifest,
    /// SHA-256 of its file, in hexadecimal.
    pub(crate) digest: String,
    /// The signatures of its file.
    pub(crate) signatures: Signatures,
    pub(crate) limits: Limits,
    /// Whether the policy names this device's board for it: it then takes precedence over a provider for all boards.
    pub(crate) is_boards_own: bool,
    pub(crate) context: Arc<PluginContext>,
    pub(crate) instances: Arc<InstanceHoldings>,
    /// The code that it was created from.
    pub(crate) code: Arc<dyn GuestCode>,
    pub(crate) guest: Arc<dyn GuestPlugin>,
    /// How many concurrent calls it accepts, and how many more it accepts now.
    pub(crate) at_once: usize,
    pub(crate) calls: Arc<Semaphore>,
    pub(crate) counters: Arc<Counters>,
}

impl std::fmt::Debug for LoadedPlugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Loaded({} {})",
            self.manifest.name, self.manifest.version
        )
    }
}

impl LoadedPlugin {
    /// Records a call that failed: in the log, in the counters, and on the device if it is the plugin's fault. Clients
    /// and other plugins can make it fail as often as they can call it: beyond its share, failures are only counted.
    pub(crate) fn failed(&self, failure: &Failure) {
        let name = &self.manifest.name;
        if failure::is_for_debugging(failure) {
            failure::log(failure, name);
            return;
        }
        let is_the_plugins = failure.is_the_plugins();
        let last_error = failure::for_author(failure, name);
        if self.context.share.log.failures.take(name) {
            failure::log(failure, name);
            if is_the_plugins {
                self.show_failure(&failure.message(name), &last_error);
            }
        }
        if is_the_plugins {
            self.counters.failed(last_error);
        }
    }

    /// Records a call that answered that it could not do its work, in the same way as a failed call.
    pub(crate) fn failed_itself(&self, message: &str) {
        let name = &self.manifest.name;
        if self.context.share.log.failures.take(name) {
            tracing::warn!(plugin = %name, "{message}");
            self.show_failure(message, message);
        }
        self.counters.failed(message.to_owned());
    }

    /// `event` is for readers of the device's events, `line` for the plugin's author.
    fn show_failure(&self, event: &str, line: &str) {
        let name = &self.manifest.name;
        let line = one_line(line, LONGEST);
        let recent = &self.context.share.log.recent;
        recent.add(name, PluginLogLevel::Error, line);
        self.context.services.device.faulted(name, event);
    }

    /// Calls it to perform an action that it provides.
    pub(crate) async fn act(
        &self,
        origin: Origin,
        call: ActionCall,
    ) -> Result<ActionAnswer, Failure> {
        let plugin = self.manifest.name.as_str();
        let span = tracing::info_span!("plugin_call", plugin, action = %call.action());
        let act = async {
            self.make_folders().await;
            self.guest.act(ServedCall::next(origin), call).await
        };
        act.instrument(span).await
    }

    /// Creates missing folders if the policy says so. The plugin does not see a folder that cannot be created.
    pub(crate) async fn make_folders(&self) {
        let folders = self.context.grants.files.iter();
        let missing = folders.filter(|folder| folder.create && !folder.host.is_dir());
        for folder in missing {
            let host = folder.host.clone();
            // Whoever could put a link on the way to it would decide where root creates folders.
            let make = move || {
                secure_fs::check_location(&host).map_err(io::Error::other)?;
                fs::create_dir_all(host)
            };
            let made = self.context.share.jobs.run(make).await;
            if let Some(Err(error)) = made
                && self.context.may_log()
            {
                let (host, plugin) = (folder.host.display(), &*self.context.name);
                tracing::warn!(
                    plugin,
                    path = %host,
                    "failed to create the folder `{host}`: {error}"
                );
            }
        }
    }

    /// Waits until the plugin accepts another call.
    pub(crate) async fn permit(&self) -> Result<OwnedSemaphorePermit, Failure> {
        if let Ok(permit) = Arc::clone(&self.calls).try_acquire_owned() {
            return Ok(permit);
        }
        let acquire = Arc::clone(&self.calls).acquire_owned();
        match tokio::time::timeout(PATIENCE, acquire).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(Failure::Busy(Bound::Calls(self.at_once))),
        }
    }
}

/// A plugin's statistics since the supervisor started, over all its versions.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    calls: AtomicU64,
    failures: AtomicU64,
    /// The time of all calls together.
    nanoseconds: AtomicU64,
    last_error: Mutex<Option<String>>,
}

impl Counters {
    /// Counts a call, and the time until the returned timer is dropped: when the call is answered, or its caller is
    /// gone.
    pub(crate) fn called(self: &Arc<Self>) -> CallTimer {
        self.calls.fetch_add(1, Relaxed);
        CallTimer {
            counters: Arc::clone(self),
            begun: Instant::now(),
        }
    }

    /// Returns the time that all calls together have taken.
    pub(crate) fn time(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds.load(Relaxed))
    }

    /// Counts a failure of the plugin.
    fn failed(&self, message: String) {
        self.failures.fetch_add(1, Relaxed);
        *self.last_error.lock() = Some(message);
    }

    /// Returns the number of calls and failures, and the last failure.
    pub(crate) fn read(&self) -> (u64, u64, Option<String>) {
        let last = self.last_error.lock().clone();
        (self.calls.load(Relaxed), self.failures.load(Relaxed), last)
    }
}

/// Measures the time of a call.
#[must_use = "the call is over as soon as this is dropped"]
pub(crate) struct CallTimer {
    counters: Arc<Counters>,
    begun: Instant,
}

impl Drop for CallTimer {
    fn drop(&mut self) {
        let nanoseconds = u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.counters.nanoseconds.fetch_add(nanoseconds, Relaxed);
    }
}

#[cfg(test)]
pub(crate) mod tests;
