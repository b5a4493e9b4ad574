//! The plugins, as the API asks for them. They are loaded while the API already answers: a plugin that
//! takes long to compile holds up the requests for plugins and no other.

use std::time::Duration;

use api::{Body, Found, PluginRoutes, PluginTally};
use futures::FutureExt;
use futures::future::BoxFuture;
use http::Method;
use plugins::{Plugins, PluginsConfig};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::plugin_writes::PluginWrites;

/// How long a request waits for plugins to be loaded.
const LOAD_WITHIN: Duration = Duration::from_secs(30);

/// How long that may take before the device is not healthy: a slow board compiles each at its first start.
const LOADED_WITHIN: Duration = Duration::from_secs(1800);

/// The plugins, loaded or not yet.
#[derive(Clone)]
pub(crate) struct PluginEndpoints {
    state: watch::Receiver<State>,
    begun: Instant,
}

#[derive(Clone)]
enum State {
    Loading,
    Loaded(Plugins),
    /// The log says why.
    Failed,
}

impl PluginEndpoints {
    /// Begins to load plugins in the background. Runs in a tokio runtime.
    pub(crate) fn start(config: PluginsConfig) -> Self {
        let (publish, state) = watch::channel(State::Loading);
        tokio::spawn(async move {
            // In a task of its own, so that a panic in it is seen.
            let loaded = tokio::spawn(Plugins::start(config)).await;
            let loaded = match loaded {
                Ok(Ok(plugins)) => State::Loaded(plugins),
                Ok(Err(error)) => {
                    tracing::error!("no plugin can be loaded: {error}");
                    State::Failed
                }
                Err(error) => {
                    tracing::error!("no plugin can be loaded: {error}");
                    State::Failed
                }
            };
            publish.send_replace(loaded);
        });
        PluginEndpoints {
            state,
            begun: Instant::now(),
        }
    }

    /// Gives back what plugins hold of the device.
    pub(crate) async fn shutdown(&self) {
        if let Some(plugins) = self.plugins() {
            plugins.shutdown().await;
        }
    }

    /// The plugins once they are loaded; `None` where they cannot be, or take too long.
    pub(crate) async fn loaded(&self) -> Option<Plugins> {
        self.clone().wait().await
    }

    fn plugins(&self) -> Option<Plugins> {
        match &*self.state.borrow() {
            State::Loaded(plugins) => Some(plugins.clone()),
            State::Loading | State::Failed => None,
        }
    }

    /// The plugins once they are loaded, however long that takes; `None` where they cannot be.
    pub(crate) async fn settled(&self) -> Option<Plugins> {
        let mut state = self.state.clone();
        let settled = state.wait_for(|state| !matches!(state, State::Loading));
        let _ = settled.await;
        self.plugins()
    }

    async fn wait(mut self) -> Option<Plugins> {
        let settled = self
            .state
            .wait_for(|state| !matches!(state, State::Loading));
        // Too late, or gone: then there are none.
        let _ = tokio::time::timeout(LOAD_WITHIN, settled).await;
        self.plugins()
    }
}

impl api::Endpoints for PluginEndpoints {
    fn problems(&self) -> Vec<String> {
        match &*self.state.borrow() {
            State::Loaded(plugins) => plugins.runtime_problems(),
            State::Failed => vec!["no plugin can be loaded: the log says why".to_owned()],
            State::Loading if self.begun.elapsed() > LOADED_WITHIN => {
                let minutes = self.begun.elapsed().as_secs() / 60;
                vec![format!("plugins are being loaded for {minutes} minutes")]
            }
            State::Loading => Vec::new(),
        }
    }

    fn allow_unpinned(&self) -> bool {
        self.plugins()
            .is_some_and(|plugins| plugins.allow_unpinned())
    }

    fn are_loaded(&self) -> bool {
        !matches!(&*self.state.borrow(), State::Loading)
    }

    fn loaded(&self) -> BoxFuture<'_, ()> {
        self.clone().wait().map(drop).boxed()
    }

    fn find(&self, method: &Method, path: &str) -> Found {
        let Some(plugins) = self.plugins() else {
            return Found::Nothing;
        };
        match plugins.find(method, path) {
            plugins::Found::Route(route) => Found::Route {
                pattern: route.pattern().to_owned(),
                call: Box::new(move |request| {
                    async move { plugins.call(route, request).await.map(Body::new) }.boxed()
                }),
            },
            plugins::Found::MethodNotAllowed { allow } => Found::OtherMethods(
                allow
                    .split(',')
                    .filter_map(|method| method.trim().parse().ok())
                    .collect(),
            ),
            plugins::Found::None => Found::Nothing,
        }
    }

    fn identify(&self) {
        match self.plugins() {
            Some(plugins) => plugins.identify(),
            None => {
                let waiting = self.clone().wait();
                tokio::spawn(async move {
                    if let Some(plugins) = waiting.await {
                        plugins.identify();
                    }
                });
            }
        }
    }

    fn tallies(&self) -> Vec<PluginTally> {
        let tallies = self.plugins().map(|plugins| plugins.tallies());
        let tallies = tallies.unwrap_or_default().into_iter();
        let told = tallies.map(|plugin| PluginTally {
            name: plugin.name,
            calls: plugin.calls,
            faults: plugin.failures,
            time: plugin.time,
        });
        told.collect()
    }

    fn report(&self) -> Value {
        let report = self.plugins().map(|plugins| plugins.report());
        serde_json::to_value(report.unwrap_or_default()).unwrap_or_default()
    }

    fn routes(&self) -> Vec<PluginRoutes> {
        let routes = self.plugins().map(|plugins| plugins.routes());
        let routes = routes.unwrap_or_default().into_iter();
        routes
            .map(|described| PluginRoutes {
                plugin: described.plugin,
                routes: described.routes,
                description: described.description,
            })
            .collect()
    }
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
        let taken = self.writes.take(plugin, bytes);
        taken.map_err(|why| plugins::DataError::Other(format!("nothing was written: {why}")))
    }
}

impl plugins::PluginData for PluginData {
    fn get(&self, plugin: &str, key: &str) -> Result<Option<Vec<u8>>, plugins::DataError> {
        self.store.plugin_get(plugin, key).map_err(data_error)
    }

    fn set(&self, plugin: &str, key: &str, value: &[u8]) -> Result<(), plugins::DataError> {
        self.may_write(plugin, key.len().saturating_add(value.len()))?;
        self.store
            .plugin_set(plugin, key, value)
            .map_err(data_error)
    }

    fn delete(&self, plugin: &str, key: &str) -> Result<(), plugins::DataError> {
        self.may_write(plugin, key.len())?;
        self.store.plugin_delete(plugin, key).map_err(data_error)
    }

    fn keys(&self, plugin: &str, prefix: &str) -> Result<Vec<String>, plugins::DataError> {
        self.store.plugin_keys(plugin, prefix).map_err(data_error)
    }
}

fn data_error(error: store::PluginDataError) -> plugins::DataError {
    match error {
        store::PluginDataError::Store(failed) => plugins::DataError::Other(failed.to_string()),
        too_large => plugins::DataError::TooLarge(too_large.to_string()),
    }
}
