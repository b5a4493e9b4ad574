//! A host with plugins, for a test to call and watch.

mod device_calls;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use os::{Action, Rehearsal, SimulatedGpio, SimulatedI2c};
use parking_lot::MutexGuard;
use plugins::{Body, CallerScope, PluginMetricValue, Plugins, RouteLookup};
use serde_json::Value;
use supervisor_testing::Answer;

use crate::fakes::FakeLocks;

/// How long a test waits for a condition.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running host. Dropping it stops it.
pub struct RunningHost {
    pub(crate) plugins: Plugins,
    pub(crate) os: Arc<Rehearsal>,
    pub(crate) gpio: SimulatedGpio,
    pub(crate) i2c: SimulatedI2c,
    pub(crate) locks: Arc<FakeLocks>,
    pub(crate) folder: DeviceFolder,
}

/// The folder of the device's files.
pub(crate) enum DeviceFolder {
    /// A temporary folder, which is removed when this is dropped.
    Temporary(tempfile::TempDir),
    /// A folder that stays.
    Kept(PathBuf),
}

impl DeviceFolder {
    /// Returns the folder's path.
    pub(crate) fn path(&self) -> &Path {
        match self {
            DeviceFolder::Temporary(folder) => folder.path(),
            DeviceFolder::Kept(folder) => folder,
        }
    }
}

impl RunningHost {
    /// Calls `GET path`, which may have a query.
    pub async fn get(&self, path: &str) -> Answer {
        self.send(Request::get(path).body(String::new())).await
    }

    /// Calls `POST path` with a JSON body.
    pub async fn post(&self, path: &str, body: Value) -> Answer {
        let request = Request::post(path).header("content-type", "application/json");
        self.send(request.body(body.to_string())).await
    }

    /// Makes a call whose body is text or bytes, for a caller with the device's key, and reads the answer to its end.
    ///
    /// # Panics
    /// If the request is not valid, or the answer ends early.
    pub async fn send<B: Into<bytes::Bytes>>(&self, request: http::Result<Request<B>>) -> Answer {
        let request = request.unwrap_or_else(|error| panic!("no request: {error}"));
        match self.try_send_by(CallerScope::DeviceKey, request).await {
            Ok(answer) => answer,
            Err(error) => panic!("{error:#}"),
        }
    }

    /// Like [`Self::send`], for a caller with this scope, and for programs.
    ///
    /// # Errors
    /// If the answer ends early.
    pub async fn try_send_by<B: Into<bytes::Bytes>>(
        &self,
        caller: CallerScope,
        request: Request<B>,
    ) -> Result<Answer> {
        let request = request.map(|body| Full::new(body.into()));
        let (parts, body) = self.call_by(caller, request).await.into_parts();
        let body = body.collect().await.context("failed to read the answer")?;
        Ok(Answer {
            status: parts.status,
            headers: parts.headers,
            body: body.to_bytes(),
        })
    }

    /// Makes a call with a body of any kind, for a caller with this scope; the answer's body arrives as the plugin writes
    /// it.
    pub async fn call_by<B>(&self, caller: CallerScope, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
        B::Error: std::fmt::Display,
    {
        match self.plugins.find(request.method(), request.uri().path()) {
            RouteLookup::Route(route) => self.plugins.call(route, caller, request).await,
            RouteLookup::MethodNotAllowed { .. } => bare(StatusCode::METHOD_NOT_ALLOWED),
            // Since the start, all plugins have been loaded or refused.
            RouteLookup::Loading { .. } | RouteLookup::None => bare(StatusCode::NOT_FOUND),
        }
    }

    /// Returns the units that were restarted, oldest first.
    #[must_use]
    pub fn restarted_units(&self) -> Vec<String> {
        let restarted = |action| match action {
            Action::Restart(unit) => Some(unit.to_string()),
            _ => None,
        };
        self.os
            .actions()
            .into_iter()
            .filter_map(restarted)
            .collect()
    }

    /// Waits until the LED shows `brightness`.
    ///
    /// # Panics
    /// If it does not within half a minute.
    pub async fn led_becomes(&self, name: &str, brightness: u32) {
        let deadline = Instant::now() + PATIENCE;
        while self.led_now(name) != Some(brightness) {
            assert!(
                Instant::now() < deadline,
                "the LED `{name}` shows {:?} and not {brightness}",
                self.led_now(name)
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Returns `None` at the moment when a write has emptied the file but not filled it yet, which does not exist with
    /// the kernel's file.
    fn led_now(&self, name: &str) -> Option<u32> {
        let folder = self.root().join("sys/class/leds").join(name);
        let text = std::fs::read_to_string(folder.join("brightness")).ok()?;
        text.trim().parse().ok()
    }

    /// Returns the GPIO lines, for the test to control.
    #[must_use]
    pub fn gpio(&self) -> &SimulatedGpio {
        &self.gpio
    }

    /// Returns the chips on I2C buses, for the test to control.
    #[must_use]
    pub fn i2c(&self) -> &SimulatedI2c {
        &self.i2c
    }

    /// Waits until the plugin has been called `times` times, including calls of its actions.
    ///
    /// # Panics
    /// If it is not within half a minute.
    pub async fn called(&self, plugin: &str, times: u64) {
        let deadline = Instant::now() + PATIENCE;
        let calls = || {
            let reports = self.plugins.report();
            let report = reports.into_iter().find(|report| report.name == plugin);
            report.map_or(0, |report| report.calls)
        };
        while calls() < times {
            assert!(
                Instant::now() < deadline,
                "`{plugin}` was called {} times, not {times}",
                calls()
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Returns the series that `plugin` has reported with the capability `metrics`, sorted by name: each as `GET
    /// /metrics` shows it, but without the plugin's name, with its value.
    #[must_use]
    pub fn metrics(&self, plugin: &str) -> Vec<(String, f64)> {
        let series = self.series(plugin).into_iter();
        series
            .map(|(series, value)| (series, value.as_f64()))
            .collect()
    }

    /// Like [`Self::metrics`], with values that say whether they are of a gauge or of a counter.
    #[must_use]
    pub fn series(&self, plugin: &str) -> Vec<(String, PluginMetricValue)> {
        let stats = self.plugins.stats().into_iter();
        stats
            .filter(|stats| stats.name == plugin)
            .flat_map(|stats| stats.metrics)
            .map(|metric| {
                let labels: Vec<_> = metric
                    .labels
                    .iter()
                    .map(|(name, value)| format!("{name}={value:?}"))
                    .collect();
                let series = if labels.is_empty() {
                    metric.name
                } else {
                    format!("{}{{{}}}", metric.name, labels.join(","))
                };
                (series, metric.value)
            })
            .collect()
    }

    /// Returns the plugins whose fields the device would report to its cloud now; `None` while it would leave out
    /// plugins' fields, because some plugins are being loaded or called for their start.
    #[must_use]
    pub fn reporting_plugins(&self) -> Option<Vec<String>> {
        let fields = self.plugins.fields()?;
        Some(fields.into_keys().collect())
    }

    /// Holds an update lock from now on, as an app would: a caller that requests the locks without force receives
    /// `message`.
    pub fn hold_update_lock(&self, message: &str) {
        *self.locks_of_apps() = Some(message.to_owned());
    }

    /// Releases the lock.
    pub fn release_update_lock(&self) {
        *self.locks_of_apps() = None;
    }

    fn locks_of_apps(&self) -> MutexGuard<'_, Option<String>> {
        self.locks.held_by_an_app.lock()
    }

    /// Returns how often plugins have taken the update locks of all apps, and how often they did so by force.
    #[must_use]
    pub fn update_locks_taken(&self) -> (usize, usize) {
        self.locks.counts()
    }

    /// Returns whether a plugin holds the locks now.
    #[must_use]
    pub fn update_locks_are_held(&self) -> bool {
        self.locks.are_held()
    }

    /// Returns the answer to `GET /v3/plugins`.
    ///
    /// # Panics
    /// Never: reports are JSON.
    #[must_use]
    pub fn report(&self) -> Value {
        serde_json::to_value(self.plugins.report())
            .unwrap_or_else(|error| panic!("a report is no JSON: {error}"))
    }

    /// Returns the root folder of the test's device.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    /// Stops everything that runs in the background, as the supervisor does when it is stopped. The device's files exist
    /// until this is dropped.
    pub async fn stop(&self) {
        self.plugins.shutdown().await;
    }
}

fn bare(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::default());
    *response.status_mut() = status;
    response
}
