//! The paths that the policy lets a plugin answer, with any method.
//!
//! `/v3/acme/*` is `/v3/acme` and everything below it. Without `/*` it is only that path, in which `:name` matches any
//! one segment.

use serde::{Deserialize, Deserializer};

use plugin_manifest::{Pattern, PatternError, is_of_stock_plugins};

/// Paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RouteGrants(Vec<RouteGrant>);

#[derive(Debug, Clone, PartialEq, Eq, derive_more::Display)]
#[display("{pattern}{}", if *below { "/*" } else { "" })]
struct RouteGrant {
    pattern: Pattern,
    /// Whether the paths below it are included.
    below: bool,
}

impl RouteGrants {
    /// Returns whether every path that a route matches is granted.
    pub(crate) fn cover(&self, route: &Pattern) -> bool {
        let mut grants = self.0.iter();
        grants.any(|grant| grant.pattern.covers(route, grant.below))
    }

    pub(crate) fn extend(&mut self, others: &RouteGrants) {
        for grant in &others.0 {
            if !self.0.contains(grant) {
                self.0.push(grant.clone());
            }
        }
    }

    /// Returns the first grant that reaches paths which only stock plugins answer.
    pub(crate) fn first_of_stock_plugins(&self) -> Option<String> {
        let mut grants = self.0.iter();
        let grant = grants.find(|grant| is_of_stock_plugins(&grant.pattern))?;
        Some(grant.to_string())
    }
}

impl RouteGrant {
    fn parse(text: &str) -> Result<RouteGrant, PatternError> {
        let (path, below) = match text.strip_suffix("/*") {
            Some(path) => (path, true),
            None => (text, false),
        };
        Ok(RouteGrant {
            pattern: Pattern::parse(path)?,
            below,
        })
    }
}

impl<'de> Deserialize<'de> for RouteGrants {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let texts = Vec::<String>::deserialize(deserializer)?;
        let grants = texts.iter().map(|text| RouteGrant::parse(text));
        let grants: Result<_, _> = grants.collect();
        Ok(RouteGrants(grants.map_err(serde::de::Error::custom)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(text: &str) -> RouteGrants {
        RouteGrants(vec![RouteGrant::parse(text).unwrap()])
    }

    #[test]
    fn a_route_is_covered_where_each_of_its_paths_is() {
        for (granted, route, expected) in [
            ("/v3/acme/*", "/v3/acme", true),
            ("/v3/acme/*", "/V3/Acme/light/:id", true),
            ("/v3/acme/*", "/v3/acme2", false),
            ("/v3/acme/*", "/v3/:any", false),
            ("/v3/acme/*", "/v3", false),
            ("/v3/acme", "/v3/acme", true),
            ("/v3/acme", "/v3/acme/light", false),
            ("/v3/acme/:id", "/v3/acme/:what", true),
            ("/v3/acme/:id", "/v3/acme/light", true),
            ("/v3/acme/light", "/v3/acme/:id", false),
            ("/v3/*", "/v3/anything/at/all", true),
            ("/v3/*", "/v2/device/name", false),
        ] {
            let pattern = Pattern::parse(route).unwrap();
            assert_eq!(
                grant(granted).cover(&pattern),
                expected,
                "{granted} {route}"
            );
        }
        assert!(!RouteGrants::default().cover(&Pattern::parse("/v3/acme").unwrap()));
    }

    #[test]
    fn the_paths_of_stock_plugins_are_recognized() {
        for (granted, expected) in [
            ("/v3/acme/*", None),
            ("/acme/*", None),
            ("/v1/device/host-config", Some("/v1/device/host-config")),
            ("/V2/acme/*", Some("/V2/acme/*")),
            ("/v2/*", Some("/v2/*")),
            ("/:any/device", Some("/:any/device")),
        ] {
            assert_eq!(grant(granted).first_of_stock_plugins().as_deref(), expected);
        }
    }

    #[test]
    fn invalid_paths_are_refused() {
        for text in [
            "",
            "*",
            "/*",
            "/v3/*/light",
            "/v3/acme*",
            "v3/acme/*",
            "/v3//*",
        ] {
            assert!(RouteGrant::parse(text).is_err(), "{text}");
        }
    }
}
