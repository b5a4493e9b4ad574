//! `GET /metrics`: the condition of the device and its supervisor, in Prometheus' text format 0.0.4. Like everything
//! else it needs a key, which Prometheus sends as `authorization: { credentials: KEY }`.
//!
//! Only the counters of requests are kept here; everything else is queried on request. Labels have few values: patterns
//! of routes and never paths, names of plugins and never of services.

mod exposition;
mod histogram;
mod process;
pub(crate) mod requests;

use std::collections::BTreeMap;
use std::time::Duration;

use axum::extract::State;
use device_types::{PluginMetricValue, PluginStats, ReconcilerStats};
use model::DeviceStatus;

use self::exposition::Exposition;
use self::process::Process;
use crate::caller::{Caller, KeyScope};
use crate::operation::{Answer, Content};
use crate::route::Route;
use crate::state::Api;
use crate::{events, v2};

pub(crate) fn routes() -> Vec<Route> {
    let page = Content::Page(exposition::MEDIA_TYPE);
    vec![
        Route::get("/metrics", metrics)
            .summary("counters and gauges of the supervisor, for Prometheus")
            .answering([Answer::new(200, "the metrics", page)]),
    ]
}

async fn metrics(State(api): State<Api>, caller: Caller) -> Exposition {
    let store = api.keys.clone();
    // Both access files, even if only the kernel's.
    let readings = tokio::task::spawn_blocking(move || (Process::look(), store.size()));
    let (process, store_size) = readings.await.unwrap_or_default();
    let mut text = Exposition::default();
    build(&mut text, &api.settings.branding.api_level);
    put_process(&mut text, &process, api.begun.elapsed(), store_size);
    api.requests.put(&mut text);
    put_streams(&mut text, &api);
    put_device(&mut text, &api.device.stats());
    put_services(&mut text, &api.device.status(), caller.scope);
    let plugins = api.endpoints.stats();
    put_plugins(&mut text, &plugins);
    put_plugin_metrics(&mut text, &plugins);
    text
}

fn build(text: &mut Exposition, api_level: &str) {
    let labels = [
        ("version", env!("CARGO_PKG_VERSION")),
        ("api_level", api_level),
    ];
    text.gauge(
        "supervisor_build_info",
        "Always 1; the labels identify what runs.",
    )
    .value(&labels, 1);
}

fn put_process(text: &mut Exposition, process: &Process, up: Duration, store_size: u64) {
    text.gauge(
        "supervisor_uptime_seconds",
        "Time since the supervisor began to answer requests.",
    )
    .seconds(&[], up);
    text.gauge(
        "process_resident_memory_bytes",
        "Resident memory of the supervisor's process, including all of its shared pages.",
    )
    .value(&[], process.resident);
    text.gauge(
        "supervisor_anonymous_memory_bytes",
        "Resident memory that no file backs.",
    )
    .value(&[], process.anonymous);
    text.counter(
        "process_cpu_seconds_total",
        "Processor time of the supervisor's process, user and system.",
    )
    .seconds(&[], process.cpu);
    text.gauge("process_open_fds", "Open file descriptors.")
        .value(&[], process.open_files);
    text.gauge(
        "supervisor_store_bytes",
        "Size of the database on the disk, with its journal.",
    )
    .value(&[], store_size);
}

fn put_streams(text: &mut Exposition, api: &Api) {
    let logs = v2::local_logs::MAX_READERS.saturating_sub(api.log_readers.available_permits());
    let events = api.device.events().readers();
    let mut readers = text.gauge(
        "supervisor_stream_readers",
        "Clients that are reading an endless stream.",
    );
    for (stream, now) in [("events", events), ("logs", logs)] {
        readers.value(&[("stream", stream)], count(now));
    }
    let mut limits = text.gauge(
        "supervisor_stream_readers_max",
        "Maximum number of clients that may read a stream at the same time.",
    );
    for (stream, most) in [
        ("events", events::MAX_READERS),
        ("logs", v2::local_logs::MAX_READERS),
    ] {
        limits.value(&[("stream", stream)], count(most));
    }
}

fn put_device(text: &mut Exposition, stats: &ReconcilerStats) {
    text.counter(
        "supervisor_reconcile_passes_total",
        "Number of times that the device was compared with its target.",
    )
    .value(&[], stats.passes);
    text.counter(
        "supervisor_step_failures_total",
        "Steps towards the target that failed.",
    )
    .value(&[], stats.step_failures);
    if let Some(reached) = stats.last_reached {
        text.gauge(
            "supervisor_last_success_timestamp_seconds",
            "When the device was last found to match its target; absent until then.",
        )
        .milliseconds(&[], reached.0);
    }
    text.counter("supervisor_downloads_total", "Images that were downloaded.")
        .value(&[], stats.downloads);
    text.counter(
        "supervisor_download_failures_total",
        "Downloads of images that failed.",
    )
    .value(&[], stats.download_failures);
    text.gauge(
        "supervisor_downloads_running",
        "Images that are being downloaded.",
    )
    .value(&[], stats.downloads_running);
    text.gauge(
        "supervisor_update_locks_held",
        "Services whose update locks the supervisor holds now.",
    )
    .value(&[], stats.locks_held);
}

/// Adds the services that the caller may see, by status.
fn put_services(text: &mut Exposition, status: &DeviceStatus, scope: KeyScope) {
    let mut by_status: BTreeMap<&str, u64> = BTreeMap::new();
    let apps = status.apps.values().filter(|app| scope.covers(app.id));
    for service in apps.flat_map(|app| &app.services) {
        *by_status.entry(service.state.into()).or_default() += 1;
    }
    let mut services = text.gauge("supervisor_services", "Services of apps, by status.");
    for (status, number) in by_status {
        services.value(&[("status", status)], number);
    }
}

fn put_plugins(text: &mut Exposition, plugins: &[PluginStats]) {
    let mut calls = text.counter("supervisor_plugin_calls_total", "Calls of plugins.");
    for plugin in plugins {
        calls.value(&[("plugin", &plugin.name)], plugin.calls);
    }
    let mut faults = text.counter(
        "supervisor_plugin_faults_total",
        "Calls that failed because of the plugin.",
    );
    for plugin in plugins {
        faults.value(&[("plugin", &plugin.name)], plugin.faults);
    }
    let mut seconds = text.counter(
        "supervisor_plugin_call_seconds_total",
        "Total duration of the calls, each until its answer.",
    );
    for plugin in plugins {
        seconds.seconds(&[("plugin", &plugin.name)], plugin.time);
    }
}

/// Adds the metrics that plugins themselves report. The `__` keeps their names apart
/// (`host/plugins/src/plugin_metrics.rs`).
fn put_plugin_metrics(text: &mut Exposition, plugins: &[PluginStats]) {
    for plugin in plugins {
        let help = format!("Reported by the plugin {}.", plugin.name);
        let prefix = plugin.name.replace('-', "_");
        let families = plugin
            .metrics
            .chunk_by(|metric, next| metric.name == next.name);
        for family in families {
            let Some(first) = family.first() else {
                continue;
            };
            let name = format!("plugin_{prefix}__{}", first.name);
            let mut samples = text.family(&name, &help, first.value.kind());
            for metric in family {
                let labels: Vec<_> = metric
                    .labels
                    .iter()
                    .map(|(name, value)| (name.as_str(), value.as_str()))
                    .collect();
                match metric.value {
                    // With an exponent if it would be long.
                    PluginMetricValue::Gauge(value) => {
                        samples.sample("", &labels, format_args!("{value:?}"));
                    }
                    PluginMetricValue::Counter(value) => samples.value(&labels, value),
                }
            }
        }
    }
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
