//! The routes of the device's own API that the policy lets a plugin request.
//!
//! `GET /v2/state/status` is that route; `:name` matches any one segment, and `/v3/acme/*` is `/v3/acme` and everything
//! below it. GET includes HEAD.

use http::Method;
use plugin_manifest::{Pattern, parse_method, route_method};
use serde::{Deserialize, Deserializer};

/// Methods and paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ApiGrants(Vec<ApiGrant>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct ApiGrant {
    method: Method,
    pattern: Pattern,
    /// Whether the paths below it are included.
    below: bool,
}

impl ApiGrants {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether this method may be requested on this path, which has no query.
    pub(crate) fn cover(&self, method: &Method, path: &str) -> bool {
        let method = route_method(method);
        let mut grants = self.0.iter();
        grants.any(|grant| grant.method == *method && grant.covers(path))
    }
}

impl ApiGrant {
    fn parse(text: &str) -> Result<ApiGrant, String> {
        let example =
            "write a method and a path, such as `GET /v2/state/status` or `POST /v3/acme/*`";
        let (method, path) = text
            .split_once(' ')
            .ok_or_else(|| format!("`{text}` is not a route: {example}"))?;
        let method = parse_method(method).map_err(|why| format!("`{text}`: {why}; {example}"))?;
        let (path, below) = match path.strip_suffix("/*") {
            Some(path) => (path, true),
            None => (path, false),
        };
        let pattern = Pattern::parse(path).map_err(|error| format!("{error}; {example}"))?;
        Ok(ApiGrant {
            method,
            pattern,
            below,
        })
    }

    fn covers(&self, path: &str) -> bool {
        if !self.below {
            return self.pattern.matches(path).is_some();
        }
        // Try each prefix of the path.
        let ends = path.match_indices('/').skip(1).map(|(end, _)| end);
        let mut beginnings = ends.chain([path.len()]);
        beginnings.any(|end| self.pattern.matches(&path[..end]).is_some())
    }
}

impl<'de> Deserialize<'de> for ApiGrants {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let texts = Vec::<String>::deserialize(deserializer)?;
        let grants = texts.iter().map(|text| ApiGrant::parse(text));
        let grants: Result<_, _> = grants.collect();
        Ok(ApiGrants(grants.map_err(serde::de::Error::custom)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_routes_of_the_policy_are_covered_and_no_others() {
        for (granted, method, path, expected) in [
            ("GET /v2/state/status", "GET", "/v2/state/status", true),
            ("GET /v2/state/status", "HEAD", "/v2/state/status", true),
            ("GET /v2/state/status", "POST", "/v2/state/status", false),
            // The API finds the route by either spelling, so both are granted.
            ("GET /v2/state/status", "GET", "/V2/State/Status/", true),
            ("GET /v2/state/status", "GET", "/v2/state/status/x", false),
            ("GET /v2/state/status", "GET", "/v2/%73tate/status", false),
            (
                "POST /v1/apps/:appId/start",
                "POST",
                "/v1/apps/7/start",
                true,
            ),
            (
                "POST /v1/apps/:appId/start",
                "POST",
                "/v1/apps/7%2f8/start",
                true,
            ),
            (
                "POST /v1/apps/:appId/start",
                "POST",
                "/v1/apps//start",
                false,
            ),
            (
                "POST /v1/apps/:appId/start",
                "POST",
                "/v1/apps/7/stop",
                false,
            ),
            ("POST /v1/apps/7/start", "POST", "/v1/apps/8/start", false),
            ("PUT /v3/acme/*", "PUT", "/v3/acme", true),
            ("PUT /v3/acme/*", "PUT", "/v3/acme/a/b", true),
            ("PUT /v3/acme/*", "PUT", "/v3/acme2", false),
            ("PUT /v3/acme/*", "PUT", "/v3", false),
            ("PUT /v3/acme/*", "PUT", "//v3/acme", false),
            ("PUT /v3/acme/*", "GET", "/v3/acme", false),
        ] {
            let grants = ApiGrants(vec![ApiGrant::parse(granted).unwrap()]);
            let method: Method = method.parse().unwrap();
            assert_eq!(
                grants.cover(&method, path),
                expected,
                "{granted}: {method} {path}"
            );
        }
        assert!(!ApiGrants::default().cover(&Method::GET, "/ping"));
    }

    #[test]
    fn an_invalid_route_is_named_with_an_example() {
        for text in [
            "/v3/acme",
            "FETCH /v3/acme",
            "* /v3/acme",
            "GET v3/acme",
            "GET /v3/*/x",
            "GET /*",
            "",
        ] {
            let error = ApiGrant::parse(text).unwrap_err();
            assert!(
                error.contains("such as `GET /v2/state/status`"),
                "{text}: {error}"
            );
        }
    }
}
