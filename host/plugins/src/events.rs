//! Events on the device, for the plugins that ask for them (`wit/events.wit`).
//!
//! ```text
//! supervisor ──► PendingEvents, one per plugin ──► its task ──► the plugin, one call after the other
//! schedules  ──┘
//! ```
//!
//! An event is queued, and its sender goes on: a plugin that is slow, fails or floods affects nothing else.

mod gates;
mod pending;
mod schedules;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use device_types::PluginLogLevel;
use parking_lot::Mutex;
use plugin_manifest::EventKind;
use plugin_protocol::text::cut;
use plugin_protocol::{
    ActionAnswer, ActionCall, CallerScope, EventAnswer, EventCall, Origin, kind_of_event,
};
use plugin_values::PluginEvent;
use tokio::task::AbortHandle;

use crate::actions::perform;
use crate::loaded::LoadedPlugin;
use gates::Gates;
use pending::PendingEvents;

/// The pause between two calls of a plugin. Everything that happens during it is combined into one call.
const PAUSE: Duration = Duration::from_millis(100);

/// The plugins that are called for events. Cloning shares them.
#[derive(Clone, Default)]
pub(crate) struct Events {
    watchers: Arc<Mutex<BTreeMap<String, Watcher>>>,
    gates: Arc<Gates>,
}

/// A plugin that is called for events, until this is dropped.
struct Watcher {
    plugin: Arc<LoadedPlugin>,
    pending: Arc<PendingEvents>,
    /// Whether it has been called for its start, if it asks for that event.
    has_started: Arc<AtomicBool>,
    tasks: Vec<AbortHandle>,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

impl Events {
    /// Sets the plugins that are called from now on. Must be called in a tokio runtime. New plugins are there because
    /// the supervisor `starts`, or else because they have just been installed.
    pub(crate) fn set_plugins<'a>(
        &self,
        plugins: impl Iterator<Item = &'a Arc<LoadedPlugin>>,
        starts: bool,
    ) {
        let mut watchers = self.watchers.lock();
        let mut before = std::mem::take(&mut *watchers);
        for plugin in plugins {
            if plugin.manifest.event_kinds().is_empty() {
                continue;
            }
            let name = plugin.manifest.name.clone();
            let watcher = match before.remove(&name) {
                Some(watcher) if Arc::ptr_eq(&watcher.plugin, plugin) => watcher,
                _ => Watcher::start(plugin, starts),
            };
            watchers.insert(name, watcher);
        }
    }

    /// Calls the plugins that asked for events of this kind.
    pub(crate) fn publish(&self, event: &PluginEvent) {
        for watcher in self.watchers.lock().values() {
            watcher.pending.add(event.clone());
        }
    }

    /// Returns whether all plugins that ask for the start event have been called for it, and have answered or failed.
    pub(crate) fn have_started(&self) -> bool {
        let watchers = self.watchers.lock();
        let mut started = watchers.values().map(|watcher| &watcher.has_started);
        started.all(|has_started| has_started.load(Ordering::Acquire))
    }

    /// Returns whether the plugins have answered, or failed at, each event that was published so far. Gates do not
    /// count: their callers wait for their answers.
    pub(crate) fn are_answered(&self) -> bool {
        let watchers = self.watchers.lock();
        watchers
            .values()
            .all(|watcher| watcher.pending.are_answered())
    }

    /// Returns the plugins that are called for this gate.
    fn gates(&self, gate: EventKind) -> Vec<Arc<LoadedPlugin>> {
        let watchers = self.watchers.lock();
        let plugins = watchers.values().map(|watcher| &watcher.plugin);
        plugins
            .filter(|plugin| plugin.manifest.events.contains(&gate))
            .map(Arc::clone)
            .collect()
    }
}

impl Watcher {
    fn start(plugin: &Arc<LoadedPlugin>, starts: bool) -> Watcher {
        let kinds = plugin.manifest.event_kinds();
        let has_started = Arc::new(AtomicBool::new(!kinds.contains(&EventKind::Start)));
        let pending = Arc::new(PendingEvents::new(kinds));
        let is_first = starts && plugin.context.services.device.is_first_start();
        pending.add(PluginEvent::Start(is_first));
        let calling = call_for_each(
            Arc::clone(plugin),
            Arc::clone(&pending),
            Arc::clone(&has_started),
        );
        let mut tasks = vec![tokio::spawn(calling).abort_handle()];
        let schedules = &plugin.manifest.schedules;
        if !schedules.is_empty() {
            let timing = schedules::run(schedules.clone(), Arc::clone(&pending));
            tasks.push(tokio::spawn(timing).abort_handle());
        }
        Watcher {
            plugin: Arc::clone(plugin),
            pending,
            has_started,
            tasks,
        }
    }
}

async fn call_for_each(
    plugin: Arc<LoadedPlugin>,
    pending: Arc<PendingEvents>,
    has_started: Arc<AtomicBool>,
) {
    loop {
        let event = pending.next().await;
        report_dropped(&plugin, pending.take_dropped());
        let kind = kind_of_event(&event);
        // A failure of the plugin itself has already been logged and counted.
        if let Ok(Err(reason)) = call_for_event(&plugin, EventCall::Notice(event)).await {
            plugin.failed_itself(&format!("the event `{kind}` failed: {reason}"));
        }
        if kind == EventKind::Start {
            has_started.store(true, Ordering::Release);
        }
        pending.end_call();
        tokio::time::sleep(PAUSE).await;
    }
}

/// Tells the owner of the device and the plugin's author that the plugin was not called for some changes of services.
fn report_dropped(plugin: &LoadedPlugin, changes: u64) {
    if changes > 0 && plugin.context.may_log() {
        let name = &plugin.manifest.name;
        let line = format!(
            "{changes} changes of services were dropped, since too many waited while the plugin was busy"
        );
        tracing::warn!(plugin = %name, "{line}");
        let recent = &plugin.context.share.log.recent;
        recent.add(name, PluginLogLevel::Warn, line);
    }
}

/// Calls the plugin for an event. The outer error means that it was not called or broke the rules, the inner one is the
/// plugin's own.
async fn call_for_event(
    plugin: &Arc<LoadedPlugin>,
    call: EventCall,
) -> Result<Result<EventAnswer, String>, String> {
    let origin = Origin::outside(CallerScope::Device);
    match perform(plugin, origin, ActionCall::Event(call)).await {
        Ok(ActionAnswer::Event(answer)) => Ok(answer.map_err(cut)),
        Ok(_) => Err("it answered another call".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
