//! The plugin that answers a request.

use std::sync::Arc;

use http::Method;

use crate::loaded::LoadedPlugin;

/// The result of looking up a request.
#[derive(Debug)]
pub enum RouteLookup {
    /// A plugin; pass this to [`crate::Plugins::call`].
    Route(RouteMatch),
    /// The path belongs to a plugin, but the method is not allowed: answer 405.
    MethodNotAllowed {
        /// The methods of the path's routes.
        methods: Vec<Method>,
    },
    /// A plugin that is being loaded may answer it: wait for [`crate::Plugins::wait_until_served`], and answer 503 if it still
    /// does not serve.
    Loading {
        /// Its name, if it is known.
        plugin: Option<String>,
    },
    /// No plugin: answer 404.
    None,
}

/// A request's plugin, as it was at the look-up: a reload in between does not disturb the call.
#[derive(Debug)]
pub struct RouteMatch {
    pub(crate) plugin: Arc<LoadedPlugin>,
    /// The index of the route in the manifest.
    pub(crate) route: usize,
    pub(crate) params: Vec<(String, String)>,
}

impl RouteMatch {
    /// Returns the plugin's name.
    #[must_use]
    pub fn plugin(&self) -> &str {
        &self.plugin.manifest.name
    }

    /// Returns the route's pattern, as written in the manifest.
    #[must_use]
    pub fn pattern(&self) -> &str {
        let route = self.plugin.manifest.routes.get(self.route);
        route.map_or("", |route| route.pattern.as_str())
    }
}
