//! The plugins as seen by the rest of the supervisor.

mod installation;
mod start;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use device_types::{PluginField, PluginLog, PluginReport, PluginRoutes, PluginStats};
use http::{Method, Request, Response};
use parking_lot::Mutex;
use plugin_manifest::Action;
use plugin_protocol::{
    BootCall, CallerScope, GuestRuntime, Origin, OsCall, OwnActionError, ProxyAnswer, ProxyCall,
    ProxyError,
};
use plugin_values::{GateVerdict, InstalledRelease, PendingUpdate, PluginEvent, Postponement};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use crate::actions::Actions;
use crate::body::Body;
use crate::boot_config::{self, BootComparison, BootConfigError, BootSetting};
use crate::call;
use crate::events::Events;
use crate::hardware::led_memory::LedMemory;
use crate::identify::Identify;
use crate::os_update::{self, OsStatus, OsUpdateError};
use crate::proxy;
use crate::recent_lines::RecentLines;
use crate::route_match::{RouteLookup, RouteMatch};
use crate::table::Table;

use installation::InstallPlaces;
pub use installation::PluginUpload;
pub use start::StartError;

/// What a person should know about a developer's device.
pub const UNPINNED: &str = "developer mode (--allow-unpinned): any file in a plugin folder gets what the policy gives to \
     the name that it claims; never run other people's devices like this";
/// Returns how long loading plugins may take without a pause: as long as two compilations that take as long as they may,
/// on a board that is busy with something else.
fn longest_load() -> Duration {
    2 * compiled_code::Limits::default().wall
}

/// The plugins of this device. Cloning shares them.
#[derive(Clone)]
pub struct Plugins {
    inner: Arc<SharedPlugins>,
}

struct SharedPlugins {
    /// Ends with the task that reloads changed plugins.
    table: watch::Receiver<Arc<Table>>,
    runtime: Arc<dyn GuestRuntime>,
    identify: Identify,
    actions: Actions,
    events: Events,
    led_memory: Arc<LedMemory>,
    background: BackgroundTasks,
    /// Since when files are being read or compiled without a pause.
    busy_since: Arc<Mutex<Option<Instant>>>,
    allow_unpinned: bool,
    recent: RecentLines,
    install_places: InstallPlaces,
    /// Why changes of files are not noticed.
    watch_problem: Option<String>,
}

/// What continues until the plugins are shut down.
struct BackgroundTasks {
    reloading: Mutex<Option<JoinHandle<()>>>,
    /// Writes to the state folder, which are finished first: whoever stopped the plugins may remove it.
    writes: TaskTracker,
}

impl BackgroundTasks {
    fn stop_reloading(&self) -> Option<JoinHandle<()>> {
        let reloading = self.reloading.lock().take();
        reloading.inspect(JoinHandle::abort)
    }
}

impl Plugins {
    /// Finds the plugin that answers `method` on `path` (without the query).
    #[must_use]
    pub fn find(&self, method: &Method, path: &str) -> RouteLookup {
        self.inner.table().find(method, path)
    }

    /// Waits until every plugin is loaded or refused.
    pub async fn wait_until_loaded(&self) {
        self.until(|table| !table.is_loading()).await;
    }

    /// Waits until the contents of each file are known: [`Self::report`] lists them all from then on.
    pub async fn wait_until_listed(&self) {
        self.until(|table| !table.is_unread).await;
    }

    /// Waits until it is known which plugin provides `action`, if any.
    pub async fn wait_until_settled(&self, action: Action) {
        self.until(|table| table.has_settled(action)).await;
    }

    /// Waits until [`Self::find`] no longer answers that something is being loaded.
    pub async fn wait_until_served(&self, method: &Method, path: &str) {
        let is_known =
            |table: &Table| !matches!(table.find(method, path), RouteLookup::Loading { .. });
        self.until(is_known).await;
    }

    /// Waits until `is` holds for the table. Does not wait if the task that changes it has ended.
    async fn until(&self, is: impl Fn(&Table) -> bool) {
        let mut table = self.inner.table.clone();
        let _ = table.wait_for(|table| is(table)).await;
    }

    /// Calls the plugin to answer a caller of this scope. The caller's key is no longer in the request. The call runs
    /// on the caller's task, and dropping the future or the answer's body ends it. An `Arc<CallUsage>` among the request's
    /// extensions shows what the call uses.
    pub async fn call<B>(
        &self,
        route: RouteMatch,
        scope: CallerScope,
        request: Request<B>,
    ) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: std::fmt::Display,
    {
        call::call(route, scope, request).await
    }

    /// Makes the device identify itself for 15 seconds from now (`POST /v1/blink`, by a caller of this scope). Returns
    /// at once; succeeds even if no plugin provides it. Must be called in a tokio runtime.
    pub fn identify(&self, scope: CallerScope) {
        self.inner.identify.start(Origin::outside(scope));
    }

    /// Makes the device identify itself for this time, and waits for the result: this is for tools that try a plugin.
    ///
    /// # Errors
    /// No plugin provides it, or the provider failed or returned too early. The text is for people.
    pub async fn identify_for(&self, scope: CallerScope, time: Duration) -> Result<(), String> {
        self.inner.identify.start_for(Origin::outside(scope), time);
        self.inner.identify.ended().await
    }

    /// Calls the plugins that ask for this event. Returns at once.
    pub fn publish(&self, event: &PluginEvent) {
        self.inner.events.publish(event);
    }

    /// Waits until [`Self::postponement`] asks all gates: each plugin that may postpone updates is loaded or refused.
    pub async fn wait_until_update_gates_loaded(&self) {
        self.until(Table::has_all_update_gates).await;
    }

    /// Returns the name of a plugin that may postpone updates and is being loaded. Also returns `None` if there may be
    /// one, but its file has not been read yet.
    #[must_use]
    pub fn loading_update_gate(&self) -> Option<String> {
        let table = self.inner.table();
        table.loading_update_gates().next().map(str::to_owned)
    }

    /// Asks the plugins that are gates whether an app may be disturbed now; returns `None` if nothing is in the way. A
    /// gate that fails, or takes too long, also postpones; none does so for longer than the policy says.
    pub async fn postponement(&self, update: &PendingUpdate) -> Option<Postponement> {
        self.inner.events.postponement(update).await
    }

    /// Records that the update of an app begins, which [`Self::postponement`] was called for: nothing is in the way any
    /// more, and the app's services are disturbed. Gates may delay the next update for the whole time again.
    pub fn note_begun_update(&self, app_uuid: &str) {
        self.inner.events.note_begun_update(app_uuid);
    }

    /// Returns whether a plugin has to declare new releases healthy, or may have to because plugins are still being
    /// loaded.
    #[must_use]
    pub fn may_judge_releases(&self) -> bool {
        !self.inner.table().has_settled(Action::Events) || self.inner.events.judges_releases()
    }

    /// Asks the plugins that are gates for releases whether a release is healthy. If one fails, or takes too long, the
    /// release does not count as healthy yet.
    pub async fn judge_release(&self, release: &InstalledRelease) -> GateVerdict {
        self.inner.events.judge_release(release).await
    }

    /// Returns the settings of the board's boot configuration for the next boot.
    ///
    /// # Errors
    /// [`BootConfigError`].
    pub async fn boot_settings(&self) -> Result<Vec<BootSetting>, BootConfigError> {
        boot_config::get(&self.inner.actions).await
    }

    /// Compares the boot configuration with the target; changes nothing.
    ///
    /// # Errors
    /// [`BootConfigError`].
    pub async fn compare_boot_config(
        &self,
        target: Vec<BootSetting>,
    ) -> Result<BootComparison, BootConfigError> {
        boot_config::compare_or_set(&self.inner.actions, BootCall::Compare(target)).await
    }

    /// Writes the boot configuration, completely or not at all; returns what differed before. Once the plugin has a
    /// place for the call, it continues even if the caller does not wait.
    ///
    /// # Errors
    /// [`BootConfigError`].
    pub async fn set_boot_config(
        &self,
        target: Vec<BootSetting>,
    ) -> Result<BootComparison, BootConfigError> {
        boot_config::compare_or_set(&self.inner.actions, BootCall::Set(target)).await
    }

    /// Returns the state of the operating system, as reported by the plugin that updates it.
    ///
    /// # Errors
    /// [`OsUpdateError`].
    pub async fn os_status(&self) -> Result<OsStatus, OsUpdateError> {
        os_update::status(&self.inner.actions).await
    }

    /// Calls the plugin that updates the operating system; [`OsCall::Status`] does nothing. Once the plugin has a place
    /// for the call, it continues even if the caller does not wait.
    ///
    /// # Errors
    /// [`OsUpdateError`].
    pub async fn update_os(&self, call: OsCall) -> Result<(), OsUpdateError> {
        os_update::perform(&self.inner.actions, call).await
    }

    /// Calls the plugin that provides `proxy-redirector`, as the plugin `caller` does while it serves a caller of this scope.
    /// No policy is consulted: this is for tools that try a plugin, and plugins use their capability of that name.
    ///
    /// # Errors
    /// [`ProxyError`], as the calling plugin receives it.
    pub async fn call_proxy_redirector(
        &self,
        scope: CallerScope,
        caller: &str,
        call: ProxyCall,
    ) -> Result<ProxyAnswer, ProxyError> {
        let origin = Origin::outside(scope).through(caller);
        proxy::call(&self.inner.actions, origin, call).await
    }

    /// Calls an action of a plugin's own by its full name, such as `acme-rails/set`, as the plugin `caller` does while it
    /// serves a caller of this scope. No policy is consulted: this is for tools that try a plugin, and plugins use their
    /// capability `actions`.
    ///
    /// # Errors
    /// [`OwnActionError`], as the calling plugin receives it.
    pub async fn call_own_action(
        &self,
        scope: CallerScope,
        caller: &str,
        action: &str,
        input: Vec<u8>,
    ) -> Result<Vec<u8>, OwnActionError> {
        let origin = Origin::outside(scope).through(caller);
        self.inner.actions.call_own(origin, action, input).await
    }

    /// Returns each plugin, sorted by name (`GET /v3/plugins`).
    #[must_use]
    pub fn report(&self) -> Vec<PluginReport> {
        self.inner.table().report()
    }

    /// Returns the last lines of a plugin after the line with this number; `None` if there is no such plugin
    /// (`GET /v3/plugins/:name/log`).
    #[must_use]
    pub fn log(&self, plugin: &str, after: u64) -> Option<PluginLog> {
        let is_there = self.inner.table().names().contains(plugin);
        is_there.then(|| self.inner.recent.after(plugin, after))
    }

    /// Returns the routes of each plugin that serves, with its descriptions of them (`GET /v3/openapi.json`).
    #[must_use]
    pub fn routes(&self) -> Vec<PluginRoutes> {
        self.inner.table().described_routes()
    }

    /// Returns the statistics of each plugin that serves, sorted by name.
    #[must_use]
    pub fn stats(&self) -> Vec<PluginStats> {
        self.inner.table().stats()
    }

    /// Returns the fields that plugins in use add to the device's report to its cloud, by plugin; those that add none
    /// are left out. Returns `None` while plugins are being loaded or called for their start: they may be about to add
    /// fields that the cloud already has.
    #[must_use]
    pub fn fields(&self) -> Option<BTreeMap<String, Vec<PluginField>>> {
        let table = self.inner.table();
        let is_settled = !table.is_loading() && self.inner.events.have_started();
        is_settled.then(|| table.fields())
    }

    /// Returns whether the plugins have answered, or failed at, each event that was published so far.
    #[must_use]
    pub fn events_are_answered(&self) -> bool {
        self.inner.events.are_answered()
    }

    /// Returns what needs a person's attention, in sentences: plugins that cannot be loaded, an invalid policy.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let mut problems = self.inner.table().problems();
        if self.inner.allow_unpinned {
            problems.insert(0, UNPINNED.to_owned());
        }
        problems.extend(self.inner.watch_problem.clone());
        problems
    }

    /// Returns what is wrong with the current policy files, and what is in force instead; `None` if nothing is wrong.
    #[must_use]
    pub fn policy_error(&self) -> Option<String> {
        self.inner.table().policy.error()
    }

    /// Returns whether files get what the policy grants to the names they claim without being pinned.
    #[must_use]
    pub fn allow_unpinned(&self) -> bool {
        self.inner.allow_unpinned
    }

    /// Returns what keeps plugins as a whole from working, in sentences: for the device's health. This does not include
    /// a plugin that cannot be loaded unless the layout ships with it, nor an invalid policy while the previous one is
    /// in force: restarting the supervisor as unhealthy would lose that policy.
    #[must_use]
    pub fn runtime_problems(&self) -> Vec<String> {
        let mut problems = self.inner.runtime.problems();
        problems.extend(self.inner.table().health_problems());
        let reloading = self.inner.background.reloading.lock();
        let has_ended = reloading.as_ref().map(JoinHandle::is_finished);
        if has_ended == Some(true) {
            problems.push("the task that loads changed plugins has ended".to_owned());
        }
        let busy_since = *self.inner.busy_since.lock();
        if let Some(since) = busy_since
            && since.elapsed() > longest_load()
        {
            let minutes = since.elapsed().as_secs() / 60;
            problems.push(format!("plugins have been loading for {minutes} minutes"));
        }
        problems.extend(self.inner.watch_problem.clone());
        problems
    }

    /// Ends the background work and releases LEDs. Calls that are under way continue.
    pub async fn shutdown(&self) {
        let background = &self.inner.background;
        if let Some(reloading) = background.stop_reloading() {
            // It was aborted, and begins no further writes once it has ended.
            let _ = reloading.await;
        }
        background.writes.close();
        background.writes.wait().await;
        self.inner.identify.stop().await;
        let led_memory = Arc::clone(&self.inner.led_memory);
        // If it fails, there is nothing left to wait for.
        let _ = tokio::task::spawn_blocking(move || led_memory.finish()).await;
    }
}

impl SharedPlugins {
    fn table(&self) -> Arc<Table> {
        Arc::clone(&self.table.borrow())
    }
}

impl Drop for SharedPlugins {
    fn drop(&mut self) {
        self.background.stop_reloading();
    }
}
