//! Which plugin answers which request. This is decided when plugins are loaded; a request only needs a look-up.

use std::collections::HashMap;

use http::Method;
use plugin_manifest::{Pattern, PatternError, Route, route_method};

/// The values of a pattern's `:names`.
type Params = Vec<(String, String)>;

/// The routes of all plugins; `P` is a plugin.
#[derive(Debug)]
pub(crate) struct Routes<P> {
    entries: Vec<Entry<P>>,
    /// The entries without names, by their path in lower case: most requests are found here.
    literal: HashMap<String, Vec<usize>>,
}

#[derive(Debug)]
struct Entry<P> {
    plugin: P,
    /// The index of the route in the plugin's manifest.
    index: usize,
    route: Route,
}

/// The host's own routes.
#[derive(Debug, Default)]
pub(crate) struct ReservedRoutes(Vec<(Option<Method>, Pattern)>);

/// The result of a look-up.
#[derive(Debug)]
pub(crate) enum Lookup<'a, P> {
    Route {
        plugin: &'a P,
        /// The index of the route in the plugin's manifest.
        route: usize,
        params: Params,
    },
    /// The path is known, but not for this method: the methods of its routes.
    MethodNotAllowed(Vec<Method>),
    None,
}

impl ReservedRoutes {
    /// Creates them from method (`*` for all) and pattern.
    pub(crate) fn new(
        routes: &[(&'static str, &'static str)],
    ) -> Result<ReservedRoutes, PatternError> {
        let parse = |(method, pattern): &(&str, &str)| {
            let method = if *method == "*" {
                None
            } else {
                Method::from_bytes(method.as_bytes()).ok()
            };
            Ok((method, Pattern::parse(pattern)?))
        };
        Ok(ReservedRoutes(
            routes.iter().map(parse).collect::<Result<_, _>>()?,
        ))
    }

    /// Checks that none of `routes` is the host's.
    pub(crate) fn check(&self, routes: &[Route]) -> Result<(), String> {
        for route in routes {
            for (method, pattern) in &self.0 {
                let same = method.as_ref().is_none_or(|method| *method == route.method);
                if same && pattern.overlaps(&route.pattern) {
                    let method = method.as_ref().map_or("*", Method::as_str);
                    return Err(format!(
                        "its route `{route}` is the supervisor's own `{method} {pattern}`"
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Checks that two plugins can exist side by side: their routes have no path in common.
pub(crate) fn overlap(routes: &[Route], owner: &str, others: &[Route]) -> Result<(), String> {
    for route in routes {
        let overlaps =
            |other: &&Route| other.method == route.method && other.pattern.overlaps(&route.pattern);
        if let Some(other) = others.iter().find(overlaps) {
            return Err(format!(
                "its route `{route}` is also the plugin `{owner}`'s (`{other}`)"
            ));
        }
    }
    Ok(())
}

impl<P> Routes<P> {
    pub(crate) fn new() -> Routes<P> {
        Routes {
            entries: Vec::new(),
            literal: HashMap::new(),
        }
    }

    /// Adds routes that passed [`ReservedRoutes::check`] and [`overlap`].
    pub(crate) fn add(&mut self, plugin: &P, routes: &[Route])
    where
        P: Clone,
    {
        for (index, route) in routes.iter().enumerate() {
            if route.pattern.rank().iter().all(|literal| *literal) {
                let path = route.pattern.as_str().to_ascii_lowercase();
                self.literal
                    .entry(path)
                    .or_default()
                    .push(self.entries.len());
            }
            self.entries.push(Entry {
                plugin: plugin.clone(),
                index,
                route: route.clone(),
            });
        }
    }

    /// Finds the plugin that answers `method` on `path`.
    pub(crate) fn find(&self, method: &Method, path: &str) -> Lookup<'_, P> {
        let method = route_method(method);
        if let Some(entry) = self.literal(method, path) {
            return Lookup::Route {
                plugin: &entry.plugin,
                route: entry.index,
                params: Vec::new(),
            };
        }
        let mut best: Option<(&Entry<P>, Params)> = None;
        let mut others: Vec<Method> = Vec::new();
        for entry in &self.entries {
            let Some(params) = entry.route.pattern.matches(path) else {
                continue;
            };
            if entry.route.method != *method {
                others.push(entry.route.method.clone());
            } else if best
                .as_ref()
                .is_none_or(|(best, _)| best.route.pattern.rank() < entry.route.pattern.rank())
            {
                best = Some((entry, params));
            }
        }
        match best {
            Some((entry, params)) => Lookup::Route {
                plugin: &entry.plugin,
                route: entry.index,
                params,
            },
            None if others.is_empty() => Lookup::None,
            None => Lookup::MethodNotAllowed(others),
        }
    }

    fn literal(&self, method: &Method, path: &str) -> Option<&Entry<P>> {
        let trimmed = path.strip_suffix('/').unwrap_or(path);
        let indexes = if trimmed.bytes().any(|byte| byte.is_ascii_uppercase()) {
            self.literal.get(&trimmed.to_ascii_lowercase())?
        } else {
            self.literal.get(trimmed)?
        };
        let mut entries = indexes.iter().filter_map(|index| self.entries.get(*index));
        entries.find(|entry| entry.route.method == *method)
    }
}

#[cfg(test)]
mod tests {
    use plugin_manifest::allowed_methods;

    use super::*;

    fn routes(list: &[&str]) -> Vec<Route> {
        list.iter()
            .map(|text| {
                let (method, pattern) = text.split_once(' ').unwrap();
                Route {
                    method: method.parse().unwrap(),
                    pattern: Pattern::parse(pattern).unwrap(),
                }
            })
            .collect()
    }

    fn owned(plugin: &str) -> Vec<Route> {
        match plugin {
            "one" => routes(&[
                "GET /v3/one",
                "POST /v3/one",
                "GET /v3/one/:id",
                "GET /v3/one/all",
            ]),
            _ => routes(&["DELETE /v3/two/:id"]),
        }
    }

    fn table() -> Routes<&'static str> {
        let mut table = Routes::new();
        table.add(&"one", &owned("one"));
        table.add(&"two", &owned("two"));
        table
    }

    #[test]
    fn a_request_finds_its_plugin() {
        for (method, path, expected) in [
            ("GET", "/v3/one", "one GET /v3/one []"),
            ("HEAD", "/V3/ONE/", "one GET /v3/one []"),
            ("POST", "/v3/one", "one POST /v3/one []"),
            ("DELETE", "/v3/one", "405 GET, HEAD, POST"),
            ("OPTIONS", "/v3/one/7", "405 GET, HEAD"),
            ("GET", "/v3/one/7", "one GET /v3/one/:id [(\"id\", \"7\")]"),
            ("GET", "/v3/one/all", "one GET /v3/one/all []"),
            ("GET", "/v3/two/7", "405 DELETE"),
            ("GET", "/v3/three", "404"),
            ("GET", "", "404"),
        ] {
            let found = match table().find(&method.parse().unwrap(), path) {
                Lookup::Route {
                    plugin,
                    route,
                    params,
                } => {
                    let Route { method, pattern } = &owned(plugin)[route];
                    format!("{plugin} {method} {pattern} {params:?}")
                }
                Lookup::MethodNotAllowed(methods) => format!("405 {}", allowed_methods(&methods)),
                Lookup::None => "404".to_owned(),
            };
            assert_eq!(found, expected, "{method} {path}");
        }
    }

    #[test]
    fn a_route_has_one_owner() {
        let reserved =
            ReservedRoutes::new(&[("GET", "/v1/device"), ("*", "/v2/:app/state")]).unwrap();
        for (route, expected) in [
            ("GET /v3/three", ""),
            ("PUT /v3/one", ""),
            (
                "GET /V3/one",
                "its route `GET /V3/one` is also the plugin `one`'s (`GET /v3/one`)",
            ),
            (
                "GET /v3/one/x",
                "its route `GET /v3/one/x` is also the plugin `one`'s (`GET /v3/one/:id`)",
            ),
            (
                "GET /v1/:any",
                "its route `GET /v1/:any` is the supervisor's own `GET /v1/device`",
            ),
            ("POST /v1/device", ""),
            (
                "PUT /v2/1/state",
                "its route `PUT /v2/1/state` is the supervisor's own `* /v2/:app/state`",
            ),
        ] {
            let route = routes(&[route]);
            let refused = reserved
                .check(&route)
                .and_then(|()| overlap(&route, "one", &owned("one")));
            assert_eq!(
                refused.map_or_else(|error| error.to_string(), |()| String::new()),
                expected
            );
        }
    }
}
