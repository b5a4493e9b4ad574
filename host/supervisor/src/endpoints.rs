//! The plugins, behind the interface of the API. They are loaded one by one while the API already answers: a plugin
//! that takes long to compile delays only the requests to it.

use std::collections::BTreeMap;
use std::time::Duration;

use api::{Body, EndpointMatch, Requester};
use bytes::Bytes;
use device_types::{
    InstallRefusal, PluginField, PluginInstallation, PluginLog, PluginReport, PluginRoutes,
    PluginStats,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use http::Method;
use model::AppUuid;
use plugins::{Action, CallerScope, PluginEvent, Plugins, PluginsConfig};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::plugin_writes::PluginWrites;

/// How long a request waits for its plugin to be loaded.
const SERVED_WITHIN: Duration = Duration::from_secs(10);
/// How long the device's own actions wait for the plugin that carries them out.
pub(crate) const SETTLED_WITHIN: Duration = Duration::from_secs(30);
/// How long plugins may take to start before the device counts as unhealthy.
const BEGUN_WITHIN: Duration = Duration::from_secs(60);

/// The plugins, started or not yet.
#[derive(Clone)]
pub(crate) struct PluginEndpoints {
    state: watch::Receiver<State>,
    since: Instant,
}

#[derive(Clone)]
enum State {
    Beginning,
    Begun(Plugins),
    /// The log contains the reason.
    Failed,
}

impl PluginEndpoints {
    /// Starts to load plugins in the background. Runs in a tokio runtime.
    pub(crate) fn start(config: PluginsConfig) -> Self {
        let (publish, state) = watch::channel(State::Beginning);
        tokio::spawn(async move {
            // In its own task, so that a panic in it is noticed.
            let begun = tokio::spawn(async { Plugins::start(config) }).await;
            let begun = match begun {
                Ok(Ok(plugins)) => State::Begun(plugins),
                Ok(Err(error)) => {
                    tracing::error!("no plugin can be loaded: {error}");
                    State::Failed
                }
                Err(error) => {
                    tracing::error!("no plugin can be loaded: {error}");
                    State::Failed
                }
            };
            publish.send_replace(begun);
        });
        PluginEndpoints {
            state,
            since: Instant::now(),
        }
    }

    /// Releases what plugins hold of the device.
    pub(crate) async fn shutdown(&self) {
        if let Some(plugins) = self.plugins() {
            plugins.shutdown().await;
        }
    }

    /// Returns the plugins, if they have started.
    pub(crate) fn plugins(&self) -> Option<Plugins> {
        match &*self.state.borrow() {
            State::Begun(plugins) => Some(plugins.clone()),
            State::Beginning | State::Failed => None,
        }
    }

    /// Returns the plugins once they have started; `None` if they cannot.
    async fn begun(&self) -> Option<Plugins> {
        let mut state = self.state.clone();
        let begun = state.wait_for(|state| !matches!(state, State::Beginning));
        let _ = begun.await;
        self.plugins()
    }

    /// Returns the plugins once it is known which one provides `action`, however long that takes; `None` if none can be
    /// loaded.
    pub(crate) async fn wait_until_settled(&self, action: Action) -> Option<Plugins> {
        let plugins = self.begun().await?;
        plugins.wait_until_settled(action).await;
        Some(plugins)
    }

    /// Returns the plugins once all those that may postpone updates are loaded, however long that takes; `None` if none
    /// can be loaded.
    pub(crate) async fn with_update_gates(&self) -> Option<Plugins> {
        let plugins = self.begun().await?;
        plugins.wait_until_update_gates_loaded().await;
        Some(plugins)
    }

    /// Returns the name of a plugin that may postpone updates and is being loaded, if one is known.
    pub(crate) fn loading_update_gate(&self) -> Option<String> {
        self.plugins()?.loading_update_gate()
    }

    /// Calls the plugins that request this event; none before they have started. Returns at once.
    pub(crate) fn publish(&self, event: &PluginEvent) {
        if let Some(plugins) = self.plugins() {
            plugins.publish(event);
        }
    }

    /// Returns the fields that plugins add to the device's report to its cloud; `None` before they
    /// are known.
    pub(crate) fn fields(&self) -> Option<BTreeMap<String, Vec<PluginField>>> {
        match &*self.state.borrow() {
            State::Beginning => None,
            State::Begun(plugins) => plugins.fields(),
            State::Failed => Some(BTreeMap::new()),
        }
    }

    /// Records that the update of an app begins.
    pub(crate) fn note_begun_update(&self, app: &AppUuid) {
        if let Some(plugins) = self.plugins() {
            plugins.note_begun_update(app.as_str());
        }
    }

    /// Returns whether a plugin may decide if new releases are healthy; also true while that is not known yet.
    pub(crate) fn may_judge_releases(&self) -> bool {
        match &*self.state.borrow() {
            State::Beginning => true,
            State::Begun(plugins) => plugins.may_judge_releases(),
            State::Failed => false,
        }
    }

    /// As [`Self::settled`], but returns `None` if that takes too long.
    pub(crate) async fn settled_in_time(&self, action: Action) -> Option<Plugins> {
        let settled = tokio::time::timeout(SETTLED_WITHIN, self.wait_until_settled(action)).await;
        settled.ok().flatten()
    }
}

#[cfg(test)]
impl PluginEndpoints {
    /// Returns plugins whose start takes for ever. Runs in a tokio runtime.
    pub(crate) fn that_never_begin() -> Self {
        let (publish, state) = watch::channel(State::Beginning);
        tokio::spawn(async move { publish.closed().await });
        PluginEndpoints {
            state,
            since: Instant::now(),
        }
    }

    /// Returns plugins none of which can be loaded.
    pub(crate) fn that_failed() -> Self {
        PluginEndpoints {
            state: watch::channel(State::Failed).1,
            since: Instant::now(),
        }
    }
}

impl api::Endpoints for PluginEndpoints {
    fn problems(&self) -> Vec<String> {
        match &*self.state.borrow() {
            State::Begun(plugins) => plugins.runtime_problems(),
            State::Failed => vec!["no plugin can be loaded: the log says why".to_owned()],
            State::Beginning if self.since.elapsed() > BEGUN_WITHIN => {
                vec!["the supervisor has not begun to load plugins".to_owned()]
            }
            State::Beginning => Vec::new(),
        }
    }

    fn allow_unpinned(&self) -> bool {
        self.plugins()
            .is_some_and(|plugins| plugins.allow_unpinned())
    }

    fn policy_error(&self) -> Option<String> {
        self.plugins()?.policy_error()
    }

    fn wait_until_listed(&self) -> BoxFuture<'_, ()> {
        let listed = async {
            if let Some(plugins) = self.begun().await {
                plugins.wait_until_listed().await;
            }
        };
        in_time(listed).boxed()
    }

    fn wait_until_served<'a>(&'a self, method: &'a Method, path: &'a str) -> BoxFuture<'a, ()> {
        let served = async move {
            if let Some(plugins) = self.begun().await {
                plugins.wait_until_served(method, path).await;
            }
        };
        in_time(served).boxed()
    }

    fn find(&self, method: &Method, path: &str) -> EndpointMatch {
        let plugins = match &*self.state.borrow() {
            State::Begun(plugins) => plugins.clone(),
            State::Beginning => {
                return EndpointMatch::Loading("plugins are being loaded".to_owned());
            }
            State::Failed => return EndpointMatch::Nothing,
        };
        match plugins.find(method, path) {
            plugins::RouteLookup::Route(route) => EndpointMatch::Route {
                pattern: route.pattern().to_owned(),
                call: Box::new(move |requester, request| {
                    let scope = scope(requester);
                    async move { plugins.call(route, scope, request).await.map(Body::new) }.boxed()
                }),
            },
            plugins::RouteLookup::MethodNotAllowed { methods } => {
                EndpointMatch::OtherMethods(methods)
            }
            plugins::RouteLookup::Loading { plugin: Some(name) } => {
                EndpointMatch::Loading(format!("plugin `{name}` is being loaded"))
            }
            plugins::RouteLookup::Loading { plugin: None } => {
                EndpointMatch::Loading("plugins are being loaded".to_owned())
            }
            plugins::RouteLookup::None => EndpointMatch::Nothing,
        }
    }

    fn identify(&self, requester: Requester) {
        let endpoints = self.clone();
        tokio::spawn(async move {
            if let Some(plugins) = endpoints.settled_in_time(Action::Identify).await {
                plugins.identify(scope(requester));
            }
        });
    }

    fn stats(&self) -> Vec<PluginStats> {
        let plugins = self.plugins();
        plugins.map(|plugins| plugins.stats()).unwrap_or_default()
    }

    fn log(&self, plugin: &str, after: u64) -> Option<PluginLog> {
        self.plugins()?.log(plugin, after)
    }

    fn begin_install<'a>(
        &'a self,
        plugin: &'a str,
    ) -> BoxFuture<'a, Result<Box<dyn api::PluginUpload>, InstallRefusal>> {
        async move {
            let plugins = self.plugins().ok_or_else(not_begun)?;
            let upload = plugins.begin_install(plugin).await?;
            Ok(Box::new(Upload(upload)) as Box<dyn api::PluginUpload>)
        }
        .boxed()
    }

    fn uninstall<'a>(&'a self, plugin: &'a str) -> BoxFuture<'a, Result<(), InstallRefusal>> {
        async move {
            let plugins = self.plugins().ok_or_else(not_begun)?;
            plugins.uninstall(plugin).await
        }
        .boxed()
    }

    fn report(&self) -> Vec<PluginReport> {
        let plugins = self.plugins();
        plugins.map(|plugins| plugins.report()).unwrap_or_default()
    }

    fn routes(&self) -> Vec<PluginRoutes> {
        let plugins = self.plugins();
        plugins.map(|plugins| plugins.routes()).unwrap_or_default()
    }
}

fn not_begun() -> InstallRefusal {
    InstallRefusal::Failed("no plugin can be loaded yet: try again".to_owned())
}

/// A plugin's file that is being uploaded.
struct Upload(plugins::PluginUpload);

impl api::PluginUpload for Upload {
    fn write(&mut self, piece: Bytes) -> BoxFuture<'_, Result<(), InstallRefusal>> {
        self.0.write(piece).boxed()
    }

    fn finish(self: Box<Self>) -> BoxFuture<'static, Result<PluginInstallation, InstallRefusal>> {
        self.0.finish().boxed()
    }
}

/// Returns the origin of a request, in the plugins' terms.
fn scope(requester: Requester) -> CallerScope {
    match requester {
        Requester::DeviceKey => CallerScope::DeviceKey,
        Requester::LocalMode => CallerScope::LocalMode,
        Requester::Service { app, service } => CallerScope::Service {
            app_id: app.0,
            service: service.to_string(),
        },
    }
}

/// Waits at most as long as a request does.
async fn in_time(waiting: impl Future<Output = ()>) {
    // If it is too late, the caller gets that as an answer.
    let _ = tokio::time::timeout(SERVED_WITHIN, waiting).await;
}

/// Returns the host's own routes, for the plugins.
pub(crate) fn reserved_routes() -> Vec<(&'static str, &'static str)> {
    // The methods in the table are all standard ones, whose names live as long as the program.
    api::core_routes()
        .map(|route| (route.method.as_str(), route.path))
        .collect()
}

/// The store behind the plugins' interface.
pub(crate) struct PluginData {
    store: store::Store,
    writes: PluginWrites,
}

impl PluginData {
    pub(crate) fn new(store: store::Store) -> Self {
        PluginData {
            store,
            writes: PluginWrites::default(),
        }
    }

    fn may_write(&self, plugin: &str, bytes: usize) -> Result<(), plugins::DataError> {
        let result = self.writes.take(plugin, bytes);
        result.map_err(|why| {
            plugins::DataError::Other(format!("nothing was written: {why}: write less often"))
        })
    }
}

/// The store's functions for plugins, with a rate limit.
impl plugins::PluginData for PluginData {
    fn get(&self, plugin: &str, key: &str) -> Result<Option<Vec<u8>>, plugins::DataError> {
        self.store.get(plugin, key)
    }

    fn change(
        &self,
        plugin: &str,
        key: &str,
        change: &plugins::ValueChange<'_>,
    ) -> Result<bool, plugins::DataError> {
        let value = change.value.unwrap_or_default();
        let bytes = key.len().saturating_add(value.len());
        self.may_write(plugin, bytes)?;
        let is_made = self.store.change(plugin, key, change)?;
        if !is_made {
            // It was compared in memory, and nothing reached the disk.
            self.writes.give_back(plugin, bytes);
        }
        Ok(is_made)
    }

    fn delete(&self, plugin: &str, key: &str) -> Result<(), plugins::DataError> {
        self.may_write(plugin, key.len())?;
        self.store.delete(plugin, key)
    }

    fn keys(&self, plugin: &str, prefix: &str) -> Result<Vec<String>, plugins::DataError> {
        self.store.keys(plugin, prefix)
    }

    fn take_write(&self, plugin: &str) -> Result<(), String> {
        self.writes.take(plugin, 0)
    }
}

#[cfg(test)]
mod tests {
    use plugins::{DataError, PluginData as _, ValueChange};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn files_beside_the_store_count_as_writes_of_the_plugin() {
        let folder = tempfile::tempdir().unwrap();
        let data = PluginData::new(store::Store::open(folder.path()).unwrap().store);
        let writes = (0..1_000).filter(|_| data.take_write("a").is_ok());
        assert_eq!(writes.count(), 100);
        let set = |plugin: &str| data.change(plugin, "key", &ValueChange::set(b"value"));
        let refused = set("a");
        assert!(matches!(refused, Err(DataError::Other(_))), "{refused:?}");
        assert_eq!(set("b"), Ok(true));
        assert_eq!(data.take_write("b"), Ok(()));
    }
}
