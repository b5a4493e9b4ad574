//! The GPIO lines that plugins hold, from their first use until the policy no longer grants them.
//!
//! An output keeps its state only while its request is open: so the request is kept here, across calls and versions of
//! the plugin, and not by an instance.

use std::collections::BTreeMap;
use std::sync::Arc;

use os::{EdgeDetection, GpioError, GpioLine};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::blocking::blocking_on_hardware;
use crate::gpio_grants::GpioGrant;

/// All lines that the policy grants to plugins that serve.
#[derive(Default)]
pub(crate) struct GpioLines(Mutex<BTreeMap<LineGrant, Arc<GrantedLine>>>);

/// The plugin's name, and the policy's settings for the line: with another direction or chip it is another line.
type LineGrant = (Arc<str>, GpioGrant);

/// A line that a plugin may use.
pub(crate) struct GrantedLine {
    /// The request, once the plugin has used it. This lock is held while something is done with it, even if the kernel
    /// does not return.
    pub(crate) held: Arc<tokio::sync::Mutex<Option<Arc<dyn GpioLine>>>>,
    /// Held by the call that waits for edges.
    watchers: Arc<Semaphore>,
    /// Cancelled when the line is no longer granted.
    pub(crate) revoked: CancellationToken,
}

impl GrantedLine {
    fn new() -> GrantedLine {
        GrantedLine {
            held: Arc::default(),
            watchers: Arc::new(Semaphore::new(1)),
            revoked: CancellationToken::new(),
        }
    }

    /// Returns the right to wait for edges, once no other call has it; `None` if the line is no longer granted.
    pub(crate) async fn become_watcher(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.watchers).acquire_owned().await.ok()
    }
}

impl GpioLines {
    /// Sets the lines that plugins may use from now on, and releases all others. Must be called in a tokio runtime.
    pub(crate) fn set_granted(&self, granted: impl Iterator<Item = LineGrant>) {
        let mut lines = self.0.lock();
        let mut before = std::mem::take(&mut *lines);
        for grant in granted {
            let line = before.remove(&grant);
            let line = line.unwrap_or_else(|| Arc::new(GrantedLine::new()));
            lines.insert(grant, line);
        }
        drop(lines);
        before.into_values().for_each(|line| give_back(&line));
    }

    /// Returns a line of a plugin; `None` if the policy does not grant it any more.
    pub(crate) fn get(&self, plugin: &Arc<str>, grant: &GpioGrant) -> Option<Arc<GrantedLine>> {
        let grant = (Arc::clone(plugin), grant.clone());
        self.0.lock().get(&grant).cloned()
    }
}

/// Makes all waits for the line fail, and returns it to the kernel once it is not in use.
fn give_back(line: &GrantedLine) {
    line.revoked.cancel();
    let held = Arc::clone(&line.held);
    // Without a runtime, the supervisor is ending, and its lines with it.
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(async move {
            let mut held = held.lock_owned().await;
            blocking_on_hardware(move || drop(held.take())).await
        });
    }
}

/// A call's wait for the edges of a line. Dropping it ends the wait. It does not hold the request itself, so the line
/// can be released before.
pub(crate) struct EdgeWatch {
    pub(crate) name: String,
    pub(crate) line: Arc<GrantedLine>,
    /// The call may wait only once at a time.
    pub(crate) turn: tokio::sync::Mutex<()>,
    permit: Option<OwnedSemaphorePermit>,
}

impl EdgeWatch {
    /// Makes the kernel record the edges of a line. Blocks.
    ///
    /// # Errors
    /// [`GpioError`].
    pub(crate) fn start(
        name: String,
        line: Arc<GrantedLine>,
        request: &dyn GpioLine,
        permit: OwnedSemaphorePermit,
    ) -> Result<EdgeWatch, GpioError> {
        request.detect_edges(EdgeDetection::On)?;
        Ok(EdgeWatch {
            name,
            line,
            turn: tokio::sync::Mutex::default(),
            permit: Some(permit),
        })
    }
}

impl Drop for EdgeWatch {
    fn drop(&mut self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let held = Arc::clone(&self.line.held);
        let permit = self.permit.take();
        runtime.spawn(async move {
            let held = held.lock_owned().await;
            let stop = move || {
                // If this fails, the next wait does it again.
                let stopped = held
                    .as_ref()
                    .map(|line| line.detect_edges(EdgeDetection::Off));
                if let Some(Err(error)) = stopped {
                    tracing::debug!("{error}");
                }
                drop(held);
                drop(permit);
            };
            blocking_on_hardware(stop).await
        });
    }
}
