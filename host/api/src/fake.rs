//! A device, its plugins and its keys as plain values, for tests of the router without a socket.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::response::IntoResponse;
use device_types::{
    ConfinedProcess, Confinement, DevicePlan, LogEvent, MissingWall, PluginMetric,
    PluginMetricValue, PluginReport, PluginRoutes, PluginState, PluginStats, ReconcilerStats,
};
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, future::BoxFuture};
use http::Method;
use http_body_util::BodyExt;
use model::{
    Action, ActionError, ApiLock, AppId, AppStatus, ContainerId, DeviceStatus, ImageState,
    ImageStatus, LockHolder, LockRefusal, LockRequest, PowerAction, ReleaseId, ReleaseState,
    ServiceId, ServiceName, ServiceState, ServiceStatus, UpdateLock,
};
use serde_json::{Value, json};
use store::{KeyOwner, Store};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::connection::ClientConnection;
use crate::device::{
    Device, EndpointMatch, Endpoints, Facts, Request, Requester, Response, SetTargetError,
};
use crate::{App, Body, Events, LocalModeAuth, Settings};

/// A device with what a test needs to be different.
pub(crate) struct FakeDevice {
    pub(crate) status: Mutex<Arc<DeviceStatus>>,
    pub(crate) facts: Arc<Facts>,
    pub(crate) local_mode: bool,
    pub(crate) problems: Vec<String>,
    pub(crate) targets: Mutex<Vec<(Value, bool)>>,
    /// Instant updates are off if it is false.
    pub(crate) updates: bool,
    /// The `force` and `cancel` of each update.
    pub(crate) updated: Mutex<Vec<(bool, bool)>>,
    /// Whose keys were replaced.
    pub(crate) replaced: Mutex<Vec<KeyOwner>>,
    pub(crate) panics: bool,
    /// What was asked for, and what every action answers.
    pub(crate) actions: Mutex<Vec<Action>>,
    pub(crate) powered: Mutex<Vec<(PowerAction, bool)>>,
    pub(crate) outcome: Result<(), ActionError>,
    pub(crate) plan: Result<DevicePlan, String>,
    /// The locks that are held, and those that were asked for and given back.
    pub(crate) locks: Vec<UpdateLock>,
    pub(crate) leased: Mutex<Vec<LockRequest>>,
    pub(crate) given_back: Mutex<Vec<(AppId, ServiceName)>>,
    pub(crate) lock_refusal: Option<LockRefusal>,
    pub(crate) events: Events,
    pub(crate) stats: ReconcilerStats,
}

impl Default for FakeDevice {
    fn default() -> Self {
        FakeDevice {
            status: Mutex::default(),
            facts: Arc::new(Facts {
                api_port: 48484,
                ..Facts::default()
            }),
            local_mode: false,
            problems: Vec::new(),
            targets: Mutex::default(),
            updates: true,
            updated: Mutex::default(),
            replaced: Mutex::default(),
            panics: false,
            actions: Mutex::default(),
            powered: Mutex::default(),
            outcome: Ok(()),
            plan: Err("the supervisor is stopping".into()),
            locks: Vec::new(),
            leased: Mutex::default(),
            given_back: Mutex::default(),
            lock_refusal: None,
            events: Events::default(),
            stats: ReconcilerStats::default(),
        }
    }
}

impl Device for FakeDevice {
    fn status(&self) -> Arc<DeviceStatus> {
        assert!(!self.panics, "a handler's panic");
        self.status.lock().unwrap().clone()
    }

    fn facts(&self) -> Arc<Facts> {
        self.facts.clone()
    }

    fn local_mode(&self) -> bool {
        self.local_mode
    }

    fn host_names(&self) -> Vec<String> {
        vec!["board".into()]
    }

    fn local_target(&self) -> Value {
        json!({"local": {"name": "local", "config": {}, "apps": {}}})
    }

    fn set_local_target(
        &self,
        target: Value,
        force: bool,
    ) -> BoxFuture<'_, Result<Vec<String>, SetTargetError>> {
        async move {
            if !self.local_mode {
                return Err(SetTargetError::NotLocalMode);
            }
            match target.get("local") {
                Some(Value::String(word)) if word == "warn" => {
                    return Ok(vec!["`build` is not supported".into()]);
                }
                Some(Value::String(word)) if word == "break" => {
                    return Err(SetTargetError::Failed("disk full".into()));
                }
                Some(Value::Object(_)) | None => {}
                Some(_) => {
                    return Err(SetTargetError::Invalid(
                        "Invalid target state.\n`local` must be an object".into(),
                    ));
                }
            }
            self.targets.lock().unwrap().push((target, force));
            Ok(Vec::new())
        }
        .boxed()
    }

    fn act(&self, action: Action) -> BoxFuture<'_, Result<(), ActionError>> {
        self.actions.lock().unwrap().push(action);
        std::future::ready(self.outcome.clone()).boxed()
    }

    fn power(&self, action: PowerAction, force: bool) -> BoxFuture<'_, Result<(), ActionError>> {
        self.powered.lock().unwrap().push((action, force));
        std::future::ready(self.outcome.clone()).boxed()
    }

    fn clean_up_volumes(&self) -> BoxFuture<'_, Result<(), String>> {
        let outcome = self.outcome.clone().map_err(|error| error.to_string());
        std::future::ready(outcome).boxed()
    }

    fn environment<'a>(
        &'a self,
        container: &'a ContainerId,
    ) -> BoxFuture<'a, Result<BTreeMap<String, String>, String>> {
        let variables = [
            ("CONTAINER", container.as_str()),
            ("PLATFORM_SUPERVISOR_API_KEY", "secret"),
            ("PLATFORM_API_KEY", "secret"),
        ];
        let environment = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        std::future::ready(Ok(environment.into())).boxed()
    }

    fn key_replaced(&self, owner: KeyOwner) -> BoxFuture<'_, ()> {
        self.replaced.lock().unwrap().push(owner);
        std::future::ready(()).boxed()
    }

    fn update(&self, force: bool, cancel: bool) -> bool {
        self.updated.lock().unwrap().push((force, cancel));
        self.updates || force
    }

    fn plan(&self) -> BoxFuture<'_, Result<DevicePlan, String>> {
        std::future::ready(self.plan.clone()).boxed()
    }

    fn update_locks(&self) -> BoxFuture<'_, Result<Vec<UpdateLock>, String>> {
        std::future::ready(Ok(self.locks.clone())).boxed()
    }

    fn lease_lock(&self, request: LockRequest) -> BoxFuture<'_, Result<UpdateLock, LockRefusal>> {
        let lock = match &self.lock_refusal {
            Some(refusal) => Err(refusal.clone()),
            None => Ok(UpdateLock {
                app: request.app,
                service: Some(request.service.clone()),
                path: "/tmp/lock".into(),
                since_ms: Some(0),
                holder: LockHolder::Api(ApiLock {
                    reason: request.reason.clone(),
                    ttl: request.ttl,
                    expires_ms: 60_000,
                    survives_reboot: request.survives_reboot,
                }),
            }),
        };
        self.leased.lock().unwrap().push(request);
        std::future::ready(lock).boxed()
    }

    fn give_lock_back(
        &self,
        app: AppId,
        service: ServiceName,
    ) -> BoxFuture<'_, Result<(), LockRefusal>> {
        self.given_back.lock().unwrap().push((app, service));
        std::future::ready(self.lock_refusal.clone().map_or(Ok(()), Err)).boxed()
    }

    fn confinement(&self) -> BoxFuture<'_, Confinement> {
        let compiler = ConfinedProcess {
            process: "compiler".to_owned(),
            in_force: vec!["user".to_owned()],
            missing: vec![MissingWall {
                wall: "files".to_owned(),
                reason: "no Landlock".to_owned(),
            }],
            lower: Vec::new(),
        };
        let confinement = Confinement {
            required: true,
            processes: vec![compiler],
        };
        futures::future::ready(confinement).boxed()
    }

    fn stats(&self) -> ReconcilerStats {
        self.stats
    }

    fn events(&self) -> &Events {
        &self.events
    }

    fn problems(&self) -> Vec<String> {
        self.problems.clone()
    }

    fn logs(&self) -> BoxStream<'static, Arc<LogEvent>> {
        let line = LogEvent {
            service_name: "web".parse().ok(),
            service_id: Some(ServiceId(11)),
            is_system: false,
            is_stderr: true,
            ..LogEvent::system("hello", Some(5))
        };
        futures::stream::iter([line, LogEvent::system("2 lines were lost", Some(6))])
            .map(Arc::new)
            .chain(futures::stream::pending())
            .boxed()
    }
}

/// One plugin with `GET /v3/greet` and `PATCH /v1/device`.
#[derive(Default)]
pub(crate) struct FakeEndpoints {
    pub(crate) identified: AtomicUsize,
    /// Nothing is found before somebody has waited for it, and `GET /v3/slow` never.
    waited: AtomicBool,
    pub(crate) problems: Mutex<Vec<String>>,
    /// What the plugin says of its routes.
    pub(crate) description: Mutex<Option<Value>>,
}

impl Endpoints for FakeEndpoints {
    fn problems(&self) -> Vec<String> {
        self.problems.lock().unwrap().clone()
    }

    fn allow_unpinned(&self) -> bool {
        false
    }

    fn policy_error(&self) -> Option<String> {
        None
    }

    fn listed(&self) -> BoxFuture<'_, ()> {
        futures::future::ready(()).boxed()
    }

    fn served<'a>(&'a self, _: &'a Method, path: &'a str) -> BoxFuture<'a, ()> {
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
            interface: None,
            digest: String::new(),
            state: PluginState::Running,
            unpinned: false,
            signed_by: None,
            refused: None,
            routes: Vec::new(),
            provides: Vec::new(),
            grants: Vec::new(),
            calls: 3,
            failures: 1,
            last_error: None,
        }]
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

/// The API over a device, with its plugin.
pub(crate) struct Fixture {
    pub(crate) app: App,
    pub(crate) device: Arc<FakeDevice>,
    pub(crate) endpoints: Arc<FakeEndpoints>,
    pub(crate) stopping: CancellationToken,
    /// The device's own key.
    pub(crate) key: String,
    /// By which requests come.
    pub(crate) connection: ClientConnection,
    /// The key of a service of app 1.
    pub(crate) shop_key: String,
    _folder: TempDir,
}

pub(crate) fn fixture(device: FakeDevice, local_mode_auth: LocalModeAuth) -> Fixture {
    fixture_with(device, local_mode_auth, Settings::default())
}

pub(crate) fn fixture_with(
    device: FakeDevice,
    local_mode_auth: LocalModeAuth,
    settings: Settings,
) -> Fixture {
    let device = Arc::new(device);
    let endpoints = Arc::new(FakeEndpoints::default());
    let stopping = CancellationToken::new();
    let folder = tempfile::tempdir().unwrap();
    let keys = Store::open(folder.path()).unwrap().store;
    Fixture {
        key: keys.global_key().unwrap().reveal().to_owned(),
        shop_key: {
            let web = "web".parse().unwrap();
            keys.service_key(AppId(1), &web)
                .unwrap()
                .reveal()
                .to_owned()
        },
        _folder: folder,
        app: App::new(
            settings,
            device.clone(),
            endpoints.clone(),
            keys,
            stopping.clone(),
        ),
        device,
        endpoints,
        stopping,
        connection: ClientConnection::without_socket(local_mode_auth, true),
    }
}

/// What came back, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content_type: Option<String>,
    pub(crate) allow: Option<String>,
    pub(crate) body: String,
}

impl Fixture {
    pub(crate) async fn ask(&self, mut request: Request) -> Answer {
        request.extensions_mut().insert(self.connection.clone());
        let response: Response = self.app.answer(request).await;
        let header = |name| {
            response
                .headers()
                .get(name)
                .map(|value: &http::HeaderValue| value.to_str().unwrap().to_owned())
        };
        Answer {
            status: response.status().as_u16(),
            content_type: header(http::header::CONTENT_TYPE),
            allow: header(http::header::ALLOW),
            body: {
                let bytes = response.into_body().collect().await.unwrap().to_bytes();
                String::from_utf8(bytes.to_vec()).unwrap()
            },
        }
    }

    /// With the global key.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask(request("GET", path, &self.key)).await
    }

    /// With the global key; JSON.
    pub(crate) async fn json(&self, path: &str) -> Value {
        let answer = self.get(path).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert_eq!(
            answer.content_type.as_deref(),
            Some("application/json; charset=utf-8")
        );
        serde_json::from_str(&answer.body).unwrap()
    }
}

/// A request without a body; an empty `key` is none.
pub(crate) fn request(method: &str, path: &str, key: &str) -> Request {
    let mut request = http::Request::builder().method(method).uri(path);
    if !key.is_empty() {
        request = request.header(http::header::AUTHORIZATION, format!("Bearer {key}"));
    }
    request.body(Body::empty()).unwrap()
}

/// App 1 `shop` with a running service and one that is downloaded; app 2 `farm` with a running one.
pub(crate) fn two_apps() -> DeviceStatus {
    let mut status = DeviceStatus::default();
    status.apps.insert(
        "shop-uuid".parse().unwrap(),
        app(
            1,
            "shop",
            vec![
                service("web", 11, ServiceState::Running),
                ServiceStatus {
                    container: None,
                    created_at_ms: None,
                    download_progress: Some(40),
                    ..service("db", 12, ServiceState::Downloading)
                },
                ServiceStatus {
                    in_target: false,
                    ..service("gone", 13, ServiceState::Stopping)
                },
            ],
        ),
    );
    status.apps.insert(
        "farm-uuid".parse().unwrap(),
        app(2, "farm", vec![service("web", 21, ServiceState::Exited)]),
    );
    status.images = vec![
        image(1, "web", None),
        image(1, "db", Some(40)),
        image(2, "web", Some(61)),
    ];
    status
}

fn app(id: u64, name: &str, services: Vec<ServiceStatus>) -> AppStatus {
    AppStatus {
        id: AppId(id),
        name: name.into(),
        commit: Some(format!("old{id}").parse().unwrap()),
        target_commit: Some(format!("new{id}").parse().unwrap()),
        target_release: Some(ReleaseId(id * 100)),
        state: ReleaseState::Downloading,
        services,
    }
}

fn service(name: &str, id: u64, state: ServiceState) -> ServiceStatus {
    ServiceStatus {
        name: name.parse().unwrap(),
        id: ServiceId(id),
        image_id: model::ImageId(id + 1000),
        release: ReleaseId(7),
        commit: None,
        image: format!("registry/{name}:1").parse().unwrap(),
        state,
        download_progress: None,
        container: Some(format!("container-{id}").parse().unwrap()),
        created_at_ms: Some(1_700_000_000_123),
        in_target: true,
    }
}

fn image(app: u64, service: &str, progress: Option<u8>) -> ImageStatus {
    ImageStatus {
        name: format!("registry/{service}:1").parse().unwrap(),
        app_id: AppId(app),
        service: service.parse().unwrap(),
        image_id: model::ImageId(app),
        engine_id: progress.is_none().then(|| "sha256:ab".parse().unwrap()),
        state: if progress.is_some() {
            ImageState::Downloading
        } else {
            ImageState::Downloaded
        },
        download_progress: progress,
    }
}
