//! Requests by route and status, and the time until the head of their answer is ready. This costs every request a few
//! atomics on a route that had to be found anyway.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use http::{Method, StatusCode};
use parking_lot::RwLock;

use super::exposition::Exposition;
use super::histogram::Histogram;

/// The statuses that are counted separately; all others are counted together.
const STATUSES: [(u16, &str); 20] = [
    (200, "200"),
    (401, "401"),
    (202, "202"),
    (204, "204"),
    (400, "400"),
    (403, "403"),
    (404, "404"),
    (405, "405"),
    (408, "408"),
    (409, "409"),
    (413, "413"),
    (415, "415"),
    (422, "422"),
    (423, "423"),
    (429, "429"),
    (500, "500"),
    (501, "501"),
    (502, "502"),
    (503, "503"),
    (504, "504"),
];
/// The maximum number of plugin routes that are counted separately, so that endless reloads do not use up memory.
const MAX_PLUGIN_ROUTES: usize = 512;

/// The route of a request.
#[derive(Debug, Clone, Default)]
pub(crate) enum RouteLabel {
    /// No route: the request was refused before one was looked up, or there is none.
    #[default]
    None,
    /// A core route, by its index.
    Core(usize),
    /// A route of a plugin, by method and pattern.
    Plugin(Method, String),
}

/// Counters of all requests so far.
pub(crate) struct Requests {
    core: Vec<CoreRoute>,
    plugins: RwLock<HashMap<(Method, String), Arc<Counts>>>,
    none: Counts,
}

/// A core route with its counters.
struct CoreRoute {
    method: &'static Method,
    path: &'static str,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    statuses: [AtomicU64; STATUSES.len() + 1],
    times: Histogram,
}

impl Requests {
    /// Creates counters for the core's routes, each given by its method and path; their order gives the indices of
    /// [`RouteLabel::Core`].
    pub(crate) fn new(core: impl Iterator<Item = (&'static Method, &'static str)>) -> Self {
        let core = core.map(|(method, path)| CoreRoute {
            method,
            path,
            counts: Counts::default(),
        });
        Requests {
            core: core.collect(),
            plugins: RwLock::default(),
            none: Counts::default(),
        }
    }

    pub(crate) fn count(&self, label: RouteLabel, status: StatusCode, time: Duration) {
        match label {
            RouteLabel::None => self.none.add(status, time),
            RouteLabel::Core(place) => {
                let core = self.core.get(place).map(|route| &route.counts);
                core.unwrap_or(&self.none).add(status, time);
            }
            RouteLabel::Plugin(method, pattern) => self.plugin(method, pattern, |counts| {
                counts.unwrap_or(&self.none).add(status, time);
            }),
        }
    }

    fn plugin(&self, method: Method, pattern: String, count: impl FnOnce(Option<&Counts>)) {
        let key = (method, pattern);
        let plugins = self.plugins.read();
        if let Some(counts) = plugins.get(&key) {
            return count(Some(counts));
        }
        drop(plugins);
        let mut plugins = self.plugins.write();
        if plugins.len() >= MAX_PLUGIN_ROUTES && !plugins.contains_key(&key) {
            return count(None);
        }
        count(Some(plugins.entry(key).or_default()));
    }

    pub(super) fn put(&self, page: &mut Exposition) {
        let mut plugins: Vec<_> = self
            .plugins
            .read()
            .iter()
            .map(|(key, counts)| (key.clone(), Arc::clone(counts)))
            .collect();
        plugins.sort_by(|(one, _), (other, _)| {
            (&one.1, one.0.as_str()).cmp(&(&other.1, other.0.as_str()))
        });
        let core = self.core.iter();
        let core = core.map(|route| (route.method.as_str(), route.path, &route.counts));
        let plugins = plugins
            .iter()
            .map(|((method, pattern), counts)| (method.as_str(), pattern.as_str(), &**counts));
        // A route without requests has no lines: the page may be read over slow connections.
        let requested: Vec<_> = core
            .chain(plugins)
            .chain([("other", "other", &self.none)])
            .filter(|(.., counts)| counts.has_requests())
            .collect();
        let mut requests = page.counter(
            "supervisor_http_requests_total",
            "Requests by route and status; the route is `other` if none was looked up or found.",
        );
        for (method, route, counts) in &requested {
            let words = STATUSES.iter().map(|(_, word)| *word).chain(["other"]);
            for (count, status) in counts.statuses.iter().zip(words) {
                let count = count.load(Relaxed);
                if count > 0 {
                    let labels = [("method", *method), ("route", *route), ("status", status)];
                    requests.value(&labels, count);
                }
            }
        }
        let mut times = page.histogram(
            "supervisor_http_request_duration_seconds",
            "Time from the head of a request to the head of its answer, by route.",
        );
        for (method, route, counts) in &requested {
            let labels = [("method", *method), ("route", *route)];
            counts.times.put(&mut times, &labels);
        }
    }
}

impl Counts {
    fn add(&self, status: StatusCode, time: Duration) {
        let status = status.as_u16();
        let place = STATUSES.iter().position(|(number, _)| *number == status);
        if let Some(count) = self.statuses.get(place.unwrap_or(STATUSES.len())) {
            count.fetch_add(1, Relaxed);
        }
        self.times.add(time);
    }

    fn has_requests(&self) -> bool {
        self.statuses.iter().any(|count| count.load(Relaxed) > 0)
    }
}
