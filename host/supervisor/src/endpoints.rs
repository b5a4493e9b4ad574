//! The plugins, as the API asks for them. They are loaded while the API already answers, one by one: a plugin that
//! takes long to compile holds up the requests for it and no others.

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
use plugins::{Action, CallerScope, PluginEvent, Plugins, PluginsConfig};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::plugin_writes::PluginWrites;

/// How long a request waits for the plugin that answers it to be loaded.
const SERVED_WITHIN: Duration = Duration::from_secs(10);
/// How long what the device does by itself waits for the plugin that does it.
const SETTLED_WITHIN: Duration = Duration::from_secs(30);
/// How long plugins may take to begin before the device is not healthy.
const BEGUN_WITHIN: Duration = Duration::from_secs(60);

/// The plugins, begun or not yet.
#[derive(Clone)]
pub(crate) struct PluginEndpoints {
    state: watch::Receiver<State>,
    since: Instant,
}

#[derive(Clone)]
enum State {
    Beginning,
    Begun(Plugins),
    /// The log says why.
    Failed,
}

impl PluginEndpoints {
    /// Begins to load plugins in the background. Runs in a tokio runtime.
    pub(crate) fn start(config: PluginsConfig) -> Self {
        let (publish, state) = watch::channel(State::Beginning);
        tokio::spawn(async move {
            // In a task of its own, so that a panic in it is seen.
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

    /// Gives back what plugins hold of the device.
    pub(crate) async fn shutdown(&self) {
        if let Some(plugins) = self.plugins() {
            plugins.shutdown().await;
        }
    }

    fn plugins(&self) -> Option<Plugins> {
        match &*self.state.borrow() {
            State::Begun(plugins) => Some(plugins.clone()),
            State::Beginning | State::Failed => None,
        }
    }

    /// The plugins once they have begun; `None` where they cannot.
    async fn begun(&self) -> Option<Plugins> {
        let mut state = self.state.clone();
        let begun = state.wait_for(|state| !matches!(state, State::Beginning));
        let _ = begun.await;
        self.plugins()
    }

    /// The plugins once it is known who provides `action`, however long that takes; `None` where none can be loaded.
    pub(crate) async fn settled(&self, action: Action) -> Option<Plugins> {
        let plugins = self.begun().await?;
        plugins.settled(action).await;
        Some(plugins)
    }

    /// Has the plugins called that ask for this event; none before they have begun. Returns at once.
    pub(crate) fn publish(&self, event: &PluginEvent) {
        if let Some(plugins) = self.plugins() {
            plugins.publish(event);
        }
    }

    /// What plugins add to the device's report to its cloud; `None` before it is known.
    pub(crate) fn fields(&self) -> Option<BTreeMap<String, Vec<PluginField>>> {
        match &*self.state.borrow() {
            State::Beginning => None,
            State::Begun(plugins) => plugins.fields(),
            State::Failed => Some(BTreeMap::new()),
        }
    }

    /// Whether a plugin may have to say that new releases are healthy; also while that is not known yet.
    pub(crate) fn may_judge_releases(&self) -> bool {
        match &*self.state.borrow() {
            State::Beginning => true,
            State::Begun(plugins) => plugins.may_judge_releases(),
            State::Failed => false,
        }
    }

    /// As [`Self::settled`], and `None` where that takes too long.
    pub(crate) async fn settled_in_time(&self, action: Action) -> Option<Plugins> {
        let settled = tokio::time::timeout(SETTLED_WITHIN, self.settled(action)).await;
        settled.ok().flatten()
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

    fn listed(&self) -> BoxFuture<'_, ()> {
        let listed = async {
            if let Some(plugins) = self.begun().await {
                plugins.listed().await;
            }
        };
        in_time(listed).boxed()
    }

    fn served<'a>(&'a self, method: &'a Method, path: &'a str) -> BoxFuture<'a, ()> {
        let served = async move {
            if let Some(plugins) = self.begun().await {
                plugins.served(method, path).await;
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
            plugins::RouteLookup::MethodNotAllowed { allow } => EndpointMatch::OtherMethods(
                allow
                    .split(',')
                    .filter_map(|method| method.trim().parse().ok())
                    .collect(),
            ),
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

/// A plugin's file that arrives.
struct Upload(plugins::PluginUpload);

impl api::PluginUpload for Upload {
    fn write(&mut self, piece: Bytes) -> BoxFuture<'_, Result<(), InstallRefusal>> {
        self.0.write(piece).boxed()
    }

    fn finish(self: Box<Self>) -> BoxFuture<'static, Result<PluginInstallation, InstallRefusal>> {
        self.0.finish().boxed()
    }
}

/// Who made a request, as plugins are told.
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

/// Waits no longer than a request does.
async fn in_time(waiting: impl Future<Output = ()>) {
    // Too late: then whoever asks is told so.
    let _ = tokio::time::timeout(SERVED_WITHIN, waiting).await;
}

/// The host's own routes, as plugins are told of them.
pub(crate) fn reserved_routes() -> Vec<(&'static str, &'static str)> {
    // Methods of the table are all standard ones, whose names live as long as the program.
    api::core_routes()
        .map(|route| (route.method.as_str(), route.path))
        .collect()
}

/// The store's part for plugins, as they ask for it.
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
        result.map_err(|why| plugins::DataError::Other(format!("nothing was written: {why}")))
    }
}

/// As the store does it for plugins, with a rate.
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
}
