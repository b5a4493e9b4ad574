//! A plugin's answer compared with the same answer from a native axum handler, in this process and over HTTP.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http_body_util::BodyExt;
use plugin_protocol::GuestRuntime;
use plugin_runtime::{Resources, Runtime};
use plugin_worker::{WorkerConfig, WorkerRuntime};
use plugins::{CallerScope, DEFAULT_SLOTS, Identity, Plugins, PluginsConfig, RouteLookup};
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::distribution;
use tokio::net::TcpListener;
use tower::ServiceExt;

use crate::figures::{Latencies, Section, added, micros};
use crate::http_load::{paced_load, rest};

const PATH: &str = "/v2/device/name";
/// The route of another plugin.
const OTHER: &str = "/v2/device/tags";
const CALLS: usize = 3000;
/// The memory of all instances together, in bytes.
const MEMORY: usize = 128 << 20;
/// Time to prepare a spare instance and to discard a used one; many times longer than needed.
const BREATH: Duration = Duration::from_micros(250);
const HTTP_TIME: Duration = Duration::from_secs(4);

pub(crate) async fn measure() -> Result<Section> {
    let mut section = Section::new("A plugin call beside a native handler");
    let native = native_router();
    let ready = PluginHost::start(in_process(DEFAULT_SLOTS)?).await?;
    // Spares use at most half of the pool. With two slots that is one, which belongs to the plugin called last.
    let fresh = PluginHost::start(in_process(2)?).await?;
    let on_device = PluginHost::start(in_worker()).await?;

    for (what, router, before, aim) in [
        (
            "on a ready spare, in process",
            ready.router(),
            None,
            "5 us at p50",
        ),
        (
            "on a ready spare, in the process of plugins",
            on_device.router(),
            None,
            "45 us at p50",
        ),
        (
            "on an instance made for it, in process",
            fresh.router(),
            Some(OTHER),
            "15 us at p50 (25 where the kernel has no PAGEMAP_SCAN)",
        ),
    ] {
        // On a worker of the runtime, like every request.
        let alternating = tokio::spawn(alternate(router, native.clone(), before));
        let (plugin, beside) = alternating.await??;
        add_comparison(&mut section, format!("call {what}"), &plugin, &beside, aim);
    }

    let (plugin_server, native_server) = (serve(on_device.router()).await?, serve(native).await?);
    for (what, pause, aim) in [
        ("250 us after another", BREATH, "10 us at p50"),
        ("right after another", Duration::ZERO, ""),
    ] {
        let beside = paced_load(native_server, PATH, 1, HTTP_TIME, pause).await?;
        let plugin = paced_load(plugin_server, PATH, 1, HTTP_TIME, pause).await?;
        let what = format!("call over HTTP, in the process of plugins, keep-alive, {what}");
        let (beside, plugin) = (beside.latencies, plugin.latencies);
        add_comparison(&mut section, what, &plugin, &beside, aim);
    }
    section.note(format!(
        "`GET {PATH}` of the plugin `device-info`, {CALLS} calls of each in turn, with time between them for \
         spares to be made. Of calls right after each other some find no spare."
    ));
    Ok(section)
}

/// Adds what the calls of a plugin took more than those of the native handler.
fn add_comparison(
    section: &mut Section,
    what: String,
    plugin: &Latencies,
    native: &Latencies,
    aim: &str,
) {
    section.add(
        what,
        format!(
            "{} at p50, {} at p99 ({} and {})",
            added(plugin.p50(), native.p50()),
            added(plugin.p99(), native.p99()),
            micros(plugin.p50()),
            micros(plugin.p99())
        ),
        format!(
            "native handler {} and {}",
            micros(native.p50()),
            micros(native.p99())
        ),
        aim,
    );
}

/// Calls the plugin and the native handler alternately.
async fn alternate(
    plugin: Router,
    native: Router,
    before: Option<&str>,
) -> Result<(Latencies, Latencies)> {
    let (mut of_plugin, mut of_native) = (Vec::new(), Vec::new());
    for call in 0..CALLS + CALLS / 10 {
        if let Some(path) = before {
            // The answer does not matter: its plugin has the spare now.
            let request = Request::get(path).body(Body::empty())?;
            let answer = plugin.clone().oneshot(request).await?;
            answer.into_body().collect().await?;
            rest(BREATH).await;
        }
        let (first, second) = (timed(&plugin).await?, timed(&native).await?);
        if call >= CALLS / 10 {
            of_plugin.push(first);
            of_native.push(second);
        }
        rest(BREATH).await;
    }
    Ok((Latencies::new(of_plugin), Latencies::new(of_native)))
}

async fn timed(router: &Router) -> Result<Duration> {
    let request = Request::get(PATH).body(Body::empty())?;
    let begin = Instant::now();
    let answer = router.clone().oneshot(request).await?;
    let status = answer.status();
    let body = answer.into_body().collect().await?.to_bytes();
    let time = begin.elapsed();
    if status != 200 || !body.starts_with(b"{\"status\":\"success\"") {
        bail!("a bad answer: {status} {}", String::from_utf8_lossy(&body));
    }
    Ok(time)
}

fn native_router() -> Router {
    let answer = || async {
        let body = json!({ "status": "success", "deviceName": "bench" }).to_string();
        let json = HeaderValue::from_static("application/json; charset=utf-8");
        ([(header::CONTENT_TYPE, json)], body)
    };
    Router::new().route(PATH, get(answer))
}

/// Plugins in this process.
fn in_process(slots: usize) -> Result<Arc<dyn GuestRuntime>> {
    let runtime = Runtime::new(Resources {
        slots,
        memory: MEMORY,
        return_memory: None,
    })?;
    Ok(Arc::new(runtime))
}

/// Plugins in a separate process, as on a device.
fn in_worker() -> Arc<dyn GuestRuntime> {
    Arc::new(WorkerRuntime::start(WorkerConfig {
        program: distribution().join("bin/supervisor-wasm"),
        slots: DEFAULT_SLOTS,
        memory: MEMORY,
        control_groups: "platform-plugins".into(),
        requires_confinement: Arc::new(|| false),
    }))
}

async fn serve(router: Router) -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(address)
}

/// The runtime with the plugins of the layout.
struct PluginHost {
    plugins: Plugins,
    _folders: TempDir,
}

impl PluginHost {
    async fn start(runtime: Arc<dyn GuestRuntime>) -> Result<Self> {
        let dist = distribution();
        let folders = tempfile::tempdir()?;
        let cache = compiled_code::Cache::new(
            dist.join("bench-cache"),
            dist.join("bin/supervisor-compile"),
            compiled_code::Limits::default(),
        )?;
        let store = store::Store::open(&folders.path().join("store"))?.store;
        let plugins = Plugins::start(PluginsConfig {
            runtime,
            plugin_dirs: vec![dist.join("plugins")],
            policy: dist.join("policy.toml"),
            stock_plugins: dist.join("stock-plugins.toml"),
            allow_unpinned: false,
            cache,
            state_dir: folders.path().to_owned(),
            host_root: folders.path().join("host"),
            plugin_config: toml::Table::new(),
            services: plugins::HostServices {
                data: Arc::new(store),
                device: Arc::new(Bench),
                cloud: Arc::new(plugins::NoCloud),
                os: Arc::new(os::Rehearsal::new(folders.path().join("host"))),
                locks: Arc::new(plugins::UnavailableService),
                host_name: Arc::new(plugins::UnavailableService),
                http: Arc::new(plugins::UnavailableService),
                api: Arc::new(plugins::UnavailableService),
                gpio: Arc::new(plugins::UnavailableService),
                i2c: Arc::new(plugins::UnavailableService),
                journal: os::Journal::new("journalctl", "/"),
            },
            core_routes: Vec::new(),
            board_memory: 1 << 30,
        })?;
        plugins.wait_until_loaded().await;
        let problems = plugins.problems();
        if !problems.is_empty() {
            bail!("the plugins have problems: {problems:?}");
        }
        Ok(PluginHost {
            plugins,
            _folders: folders,
        })
    }

    fn router(&self) -> Router {
        let plugins = self.plugins.clone();
        Router::new().fallback(move |request: Request| {
            let plugins = plugins.clone();
            async move { call(&plugins, request).await }
        })
    }
}

async fn call(plugins: &Plugins, request: Request) -> Response {
    match plugins.find(request.method(), request.uri().path()) {
        RouteLookup::Route(route) => {
            let answer = plugins.call(route, CallerScope::DeviceKey, request).await;
            answer.map(Body::new)
        }
        _ => http::StatusCode::NOT_FOUND.into_response(),
    }
}

/// A stand-in for the device.
struct Bench;

impl plugins::Device for Bench {
    fn identity(&self) -> Identity {
        Identity {
            uuid: "0".repeat(32),
            name: "bench".into(),
            device_type: "generic".into(),
            arch: std::env::consts::ARCH.into(),
        }
    }

    fn state(&self) -> Value {
        json!({})
    }
}
