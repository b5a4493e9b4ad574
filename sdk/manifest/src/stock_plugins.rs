//! The plugins that a layout ships with, and what is left to them.

use crate::{Action, Manifest, Pattern};

/// The first segments below which only stock plugins answer: clients believe these endpoints to be the device's own.
const SEGMENTS: [&str; 2] = ["v1", "v2"];

/// The stock plugins, each with the action that it provides on all boards, if there is one. The list is not read from
/// `packaging/stock-plugins.toml`, since this crate is also built by plugin authors, who receive it without that file; a
/// test compares the two.
pub const STOCK_PLUGINS: &[(&str, Option<Action>)] = &[
    // It provides `boot-config` for the boards that its manifest names.
    ("boot-config-txt", None),
    ("device-info", None),
    ("host-config", None),
    ("journal-logs", None),
    ("led-blink", Some(Action::Identify)),
    ("proxy-redirector", Some(Action::ProxyRedirector)),
    ("tags", None),
    ("vpn", None),
];

/// The rule, as all messages about it say it.
pub const STOCK_ROUTES: &str = "only stock plugins answer below `/v1` and `/v2`";

/// Returns whether a stock plugin has this name.
#[must_use]
pub fn is_stock_plugin(name: &str) -> bool {
    STOCK_PLUGINS.iter().any(|(stock, _)| *stock == name)
}

/// Returns whether the pattern matches a path that only stock plugins answer.
#[must_use]
pub fn is_of_stock_plugins(pattern: &Pattern) -> bool {
    // A `:name` matches any segment, and therefore these.
    pattern
        .first_literal()
        .is_none_or(|first| SEGMENTS.contains(&first))
}

impl Manifest {
    /// Returns an error for each route that only stock plugins answer, if no stock plugin has this one's name. Every
    /// device refuses them although the manifest is valid.
    pub fn stock_routes(&self) -> impl Iterator<Item = String> {
        let routes = self.routes.iter();
        let routes = routes.filter(|_| !is_stock_plugin(&self.name));
        let routes = routes.filter(|route| is_of_stock_plugins(&route.pattern));
        routes.map(|route| {
            format!("the route `{route}` is refused: {STOCK_ROUTES}; choose another path")
        })
    }

    /// Returns each action that this plugin provides and a stock plugin provides on all boards, with the name of the latter.
    pub fn actions_of_stock_plugins(&self) -> impl Iterator<Item = (Action, &'static str)> {
        let others = STOCK_PLUGINS.iter().filter(|(name, _)| *name != self.name);
        others
            .filter_map(|(name, action)| Some(((*action)?, *name)))
            .filter(|(action, _)| self.provides.contains(action))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_stock_plugins_are_those_of_the_layout() {
        let file = "../../packaging/stock-plugins.toml";
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        let list: toml::Table = std::fs::read_to_string(file).unwrap().parse().unwrap();
        let list = list["plugins"].as_table().unwrap();
        let names: Vec<_> = STOCK_PLUGINS.iter().map(|(name, _)| *name).collect();
        assert_eq!(list.keys().collect::<Vec<_>>(), names);
        for (name, action) in STOCK_PLUGINS {
            let provides = list[*name].get("provides");
            let provides = provides.map(|actions| actions[0].as_str().unwrap());
            let provides = provides.filter(|action| *action != "boot-config");
            assert_eq!(action.map(<&str>::from), provides, "{name}");
        }
    }

    #[test]
    fn paths_that_match_what_only_stock_plugins_answer_are_theirs() {
        for (path, expected) in [
            ("/v3/mine", false),
            ("/mine", false),
            ("/v1/mine", true),
            ("/V2/mine", true),
            ("/:any/mine", true),
        ] {
            let pattern = Pattern::parse(path).unwrap();
            assert_eq!(is_of_stock_plugins(&pattern), expected, "{path}");
        }
    }
}
