//! Plugins as plain values.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::response::IntoResponse;
use bytes::Bytes;
use device_types::{
    InstallRefusal, Moment, PluginAbout, PluginField, PluginFieldValue, PluginInstallation,
    PluginLog, PluginLogLevel, PluginLogLine, PluginMetric, PluginMetricValue, PluginReport,
    PluginRoutes, PluginState, PluginStats,
};
use futures::{FutureExt, future::BoxFuture};
use http::Method;
use serde_json::Value;

use crate::caller::Requester;
use crate::device::{EndpointMatch, Endpoints, PluginUpload};
use crate::message::Request;

/// One plugin with `GET /v3/greet` and `PATCH /v1/device`.
#[derive(Default)]
pub(crate) struct FakeEndpoints {
    pub(crate) identified: AtomicUsize,
    /// Nothing is found until somebody has waited for it, and `GET /v3/slow` never is.
    waited: AtomicBool,
    pub(crate) problems: Mutex<Vec<String>>,
    /// Whether the device belongs to a developer.
    pub(crate) is_developers: AtomicBool,
    /// The plugins that were sent: the received part of the last one, and those that were
    /// installed.
    pub(crate) uploads: Arc<Mutex<Uploads>>,
    /// The plugin's description of its routes.
    pub(crate) description: Mutex<Option<Value>>,
}

/// Plugins that were sent.
#[derive(Debug, Default)]
pub(crate) struct Uploads {
    pub(crate) begun: usize,
    pub(crate) installed: Vec<(String, usize)>,
    pub(crate) removed: Vec<String>,
}

/// An upload in progress.
struct FakeUpload {
    plugin: String,
    length: usize,
    uploads: Arc<Mutex<Uploads>>,
}

impl PluginUpload for FakeUpload {
    fn write(&mut self, piece: Bytes) -> BoxFuture<'_, Result<(), InstallRefusal>> {
        self.length += piece.len();
        futures::future::ready(Ok(())).boxed()
    }

    fn finish(self: Box<Self>) -> BoxFuture<'static, Result<PluginInstallation, InstallRefusal>> {
        let mut uploads = self.uploads.lock().unwrap();
        uploads.installed.push((self.plugin.clone(), self.length));
        let installation = PluginInstallation {
            version: "0.2.0".to_owned(),
            digest: "00".to_owned(),
            previous: Some("0.1.0".to_owned()),
            state: PluginState::Running,
            refused: None,
            policy_lines: None,
        };
        futures::future::ready(Ok(installation)).boxed()
    }
}

impl Endpoints for FakeEndpoints {
    fn problems(&self) -> Vec<String> {
        self.problems.lock().unwrap().clone()
    }

    fn allow_unpinned(&self) -> bool {
        self.is_developers.load(Ordering::Relaxed)
    }

    fn begin_install<'a>(
        &'a self,
        plugin: &'a str,
    ) -> BoxFuture<'a, Result<Box<dyn PluginUpload>, InstallRefusal>> {
        self.uploads.lock().unwrap().begun += 1;
        let begun = match plugin {
            "shipped" => Err(InstallRefusal::Conflict("it is shipped".to_owned())),
            _ => Ok(Box::new(FakeUpload {
                plugin: plugin.to_owned(),
                length: 0,
                uploads: Arc::clone(&self.uploads),
            }) as Box<dyn PluginUpload>),
        };
        futures::future::ready(begun).boxed()
    }

    fn uninstall<'a>(&'a self, plugin: &'a str) -> BoxFuture<'a, Result<(), InstallRefusal>> {
        let removed = match plugin {
            "greet" => Ok(()),
            _ => Err(InstallRefusal::Unknown),
        };
        if removed.is_ok() {
            let mut uploads = self.uploads.lock().unwrap();
            uploads.removed.push(plugin.to_owned());
        }
        futures::future::ready(removed).boxed()
    }

    fn policy_error(&self) -> Option<String> {
        None
    }

    fn wait_until_listed(&self) -> BoxFuture<'_, ()> {
        futures::future::ready(()).boxed()
    }

    fn wait_until_served<'a>(&'a self, _: &'a Method, path: &'a str) -> BoxFuture<'a, ()> {
        self.waited.store(path != "/v3/slow", Ordering::Relaxed);
        futures::future::ready(()).boxed()
    }

    fn find(&self, method: &Method, path: &str) -> EndpointMatch {
        let has = match path {
            "/v3/greet" => Method::GET,
            "/v1/device" => Method::PATCH,
            "/v3/slow" => Method::GET,
            _ => return EndpointMatch::Nothing,
        };
        if !self.waited.load(Ordering::Relaxed) {
            return EndpointMatch::Loading("plugin `greet` is being loaded".to_owned());
        }
        let answers_head = *method == Method::HEAD && has == Method::GET;
        if *method != has && !answers_head {
            return EndpointMatch::OtherMethods(vec![has]);
        }
        EndpointMatch::Route {
            pattern: path.to_owned(),
            call: Box::new(|requester, request: Request| {
                let text = format!("hello from {} to {requester:?}", request.uri().path());
                async move { text.into_response() }.boxed()
            }),
        }
    }

    fn identify(&self, _: Requester) {
        self.identified.fetch_add(1, Ordering::Relaxed);
    }

    fn report(&self) -> Vec<PluginReport> {
        vec![PluginReport {
            name: "greet".to_owned(),
            file: "/plugins/greet.wasm".to_owned(),
            version: None,
            about: PluginAbout::default(),
            interface: None,
            digest: String::new(),
            state: PluginState::Running,
            unpinned: false,
            signed_by: None,
            refused: None,
            refused_digest: None,
            routes: Vec::new(),
            provides: Vec::new(),
            events: Vec::new(),
            actions: Vec::new(),
            grants: Vec::new(),
            limits: None,
            fields: vec![PluginField {
                name: "level".to_owned(),
                value: PluginFieldValue::Number(40.into()),
                unit: Some("%".to_owned()),
            }],
            calls: 3,
            failures: 1,
            last_error: None,
        }]
    }

    fn log(&self, plugin: &str, after: u64) -> Option<PluginLog> {
        let lines = (1..=3).filter(|number| *number > after);
        let line = |number| PluginLogLine {
            number,
            time: Moment(0),
            level: PluginLogLevel::Info,
            message: format!("line {number}"),
        };
        (plugin == "greet").then(|| PluginLog {
            newest: 3,
            lines: lines.map(line).collect(),
        })
    }

    fn routes(&self) -> Vec<PluginRoutes> {
        vec![PluginRoutes {
            plugin: "greet".to_owned(),
            routes: vec![(Method::GET, "/v3/greet".to_owned())],
            description: self.description.lock().unwrap().clone(),
        }]
    }

    fn stats(&self) -> Vec<PluginStats> {
        vec![PluginStats {
            name: "greet".into(),
            calls: 3,
            faults: 1,
            time: std::time::Duration::from_millis(2),
            metrics: vec![
                metric(
                    "level",
                    &[("tank", "a \"b\"")],
                    PluginMetricValue::Gauge(1e300),
                ),
                metric("level", &[("tank", "c")], PluginMetricValue::Gauge(-0.5)),
                metric("refills_total", &[], PluginMetricValue::Counter(u64::MAX)),
            ],
        }]
    }
}

fn metric(name: &str, labels: &[(&str, &str)], value: PluginMetricValue) -> PluginMetric {
    PluginMetric {
        name: name.to_owned(),
        labels: labels
            .iter()
            .map(|&(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        value,
    }
}
