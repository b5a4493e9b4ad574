//! Who answers a request.

use std::sync::Arc;

use crate::loaded::LoadedPlugin;

/// Who answers a request.
#[derive(Debug)]
pub enum RouteLookup {
    /// A plugin; give this to [`crate::Plugins::call`].
    Route(RouteMatch),
    /// The path is a plugin's and the method is not: answer 405.
    MethodNotAllowed {
        /// The value of the header `Allow`.
        allow: String,
    },
    /// A plugin that is being loaded may answer it: wait for [`crate::Plugins::served`], and answer 503 in the end.
    Loading {
        /// Its name, where that is known.
        plugin: Option<String>,
    },
    /// No plugin: answer 404.
    None,
}

/// A request's plugin, as it was when it was found: a reload in between does not disturb the call.
#[derive(Debug)]
pub struct RouteMatch {
    pub(crate) plugin: Arc<LoadedPlugin>,
    /// The route's place in the manifest.
    pub(crate) route: usize,
    pub(crate) params: Vec<(String, String)>,
}

impl RouteMatch {
    /// The plugin's name.
    #[must_use]
    pub fn plugin(&self) -> &str {
        &self.plugin.manifest.name
    }

    /// The route's pattern, as the manifest has it.
    #[must_use]
    pub fn pattern(&self) -> &str {
        let route = self.plugin.manifest.routes.get(self.route);
        route.map_or("", |route| route.pattern.as_str())
    }
}
