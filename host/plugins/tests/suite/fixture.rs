//! A device with plugins, as far as plugins can tell.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use compiled_code::{Cache, Limits};
use device_types::PluginReport;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use os::{Journal, Rehearsal, SimulatedGpio, SimulatedI2c};
use plugin_protocol::GuestRuntime;
use plugin_runtime::{Resources, Runtime};
use plugin_worker::{WorkerConfig, WorkerRuntime};
use plugins::{
    Body, CallerScope, Device, DeviceApi, HttpClient, Identity, Manifest, Plugins, PluginsConfig,
    RouteLookup, UnavailableService,
};

/// How long anything may take.
const DEADLINE: Duration = Duration::from_secs(240);

/// Returns the component that does what its path says, without a manifest.
pub(crate) fn guest() -> &'static [u8] {
    static GUEST: OnceLock<Vec<u8>> = OnceLock::new();
    GUEST.get_or_init(|| component("plugin_guests"))
}

/// Returns a component that was built before.
pub(crate) fn component(name: &str) -> Vec<u8> {
    let folder = std::env::var_os("SUPERVISOR_TEST_GUESTS").map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| target_folder().join("wasm32-wasip2/wasm"));
    let path = folder.join(format!("{name}.wasm"));
    fs::read(&path).unwrap_or_else(|error| {
        panic!(
            "`{}`: {error}; run this through `cargo xtask test`",
            path.display()
        )
    })
}

fn target_folder() -> PathBuf {
    // target/debug/deps/suite-0123
    std::env::current_exe()
        .unwrap()
        .ancestors()
        .nth(3)
        .unwrap()
        .to_owned()
}

/// Returns a program of the layout.
fn program(name: &str) -> PathBuf {
    let dist = std::env::var_os("SUPERVISOR_DIST").map(PathBuf::from);
    let candidates = match dist {
        Some(dist) => vec![dist.join("bin").join(name)],
        None => ["dist/bin", "compiler", "release"]
            .map(|folder| target_folder().join(folder).join(name))
            .into(),
    };
    candidates
        .into_iter()
        .find(|path| path.is_file())
        .unwrap_or_else(|| panic!("no `{name}`: run this through `cargo xtask test`"))
}

/// Returns the cache for all tests, so that each guest is compiled only once; it is in cargo's folder for temporary
/// files of tests, which is kept.
fn cache() -> Cache {
    static CACHE: OnceLock<Cache> = OnceLock::new();
    CACHE
        .get_or_init(|| cache_with(program("supervisor-compile")))
        .clone()
}

/// Returns the same cache folder with another compiler.
fn cache_with(compiler: PathBuf) -> Cache {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compiled-plugins");
    Cache::new(folder, compiler, Limits::default()).unwrap()
}

/// Returns a manifest with one route for each method under `/v3/NAME`, and `more`.
pub(crate) fn manifest(name: &str, more: &str) -> String {
    format!(
        "name = \"{name}\"\nversion = \"1.0.0\"\ninterface = \"1.0.0\"\n{more}\n\
         [[routes]]\nmethod = \"GET\"\npath = \"/v3/{name}/:what\"\n\
         [[routes]]\nmethod = \"POST\"\npath = \"/v3/{name}/:what\"\n"
    )
}

/// All capabilities that the guest imports: each of its manifests has to ask for them.
pub(crate) const ALL: &str = "capabilities = [
    { name = \"device\", reason = \"r\" }, { name = \"store\", reason = \"r\" },
    { name = \"led\", reason = \"r\" }, { name = \"clock\", reason = \"r\" },
    { name = \"files\", reason = \"r\" }, { name = \"identify\", reason = \"r\" },
    { name = \"proxy-redirector\", reason = \"r\" }, { name = \"units\", reason = \"r\" }, { name = \"journal\", reason = \"r\" }]";

/// Returns the policy that grants them to the plugins of these names.
pub(crate) fn grant_all(names: &[&str]) -> String {
    names
        .iter()
        .map(|name| {
            format!("[plugins.{name}]\ngrants = [\"device\", \"store\", \"led\", \"clock\", \"files\", \"identify\", \"proxy-redirector\", \"units\", \"journal\"]\n")
        })
        .collect()
}

/// Returns the guest with a manifest.
pub(crate) fn plugin(manifest: &str) -> Vec<u8> {
    with_section(guest(), "platform:manifest", manifest.as_bytes())
}

/// Returns `component` with a custom section at its end.
pub(crate) fn with_section(component: &[u8], name: &str, content: &[u8]) -> Vec<u8> {
    let mut file = component.to_vec();
    plugin_manifest::append_section(&mut file, name, content);
    file
}

/// Returns the guest, without a manifest, with code that is in no cache: with a custom section at its beginning.
pub(crate) fn guest_in_no_cache() -> Vec<u8> {
    let now = format!("{:?}", SystemTime::now());
    let stamp = with_section(&[], "stamp", now.as_bytes());
    let mut component = guest().to_vec();
    let beginning = plugin_manifest::COMPONENT.len();
    component.splice(beginning..beginning, stamp);
    component
}

/// Returns the plugin of this manifest with code that is in no cache.
pub(crate) fn never_compiled(manifest: &str) -> Vec<u8> {
    with_section(
        &guest_in_no_cache(),
        "platform:manifest",
        manifest.as_bytes(),
    )
}

/// A program in place of the journal command: it prints `a line of the journal` endlessly.
fn flood() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../os/tests/programs/flood")
}

struct TestDevice {
    board: &'static str,
    is_first_start: bool,
    breaks: Arc<AtomicBool>,
}

impl Device for TestDevice {
    fn identity(&self) -> Identity {
        assert!(!self.breaks.load(SeqCst), "as the test wanted");
        Identity {
            uuid: "0123456789abcdef0123456789abcdef".to_owned(),
            name: "kitchen".to_owned(),
            device_type: self.board.to_owned(),
            arch: "aarch64".to_owned(),
        }
    }

    fn state(&self) -> serde_json::Value {
        serde_json::json!({ "api_port": 48484 })
    }

    fn is_first_start(&self) -> bool {
        self.is_first_start
    }
}

/// The folders for the plugins of [`Setup::start`].
pub(crate) struct Setup {
    pub(crate) root: tempfile::TempDir,
    pub(crate) os: Arc<Rehearsal>,
    pub(crate) gpio: SimulatedGpio,
    pub(crate) i2c: SimulatedI2c,
    http: Arc<dyn HttpClient>,
    api: Arc<dyn DeviceApi>,
    config: String,
    compiler: Option<PathBuf>,
    allow_unpinned: bool,
    board: &'static str,
    is_first_start: bool,
    slots: usize,
    in_process: bool,
    breaks: Arc<AtomicBool>,
    /// The store of the device before it was restarted: a process opens it only once.
    store: Option<Arc<store::Store>>,
}

pub(crate) fn setup() -> Setup {
    static LOG: OnceLock<()> = OnceLock::new();
    LOG.get_or_init(|| {
        let filter = std::env::var("RUST_LOG").unwrap_or_else(|_| "off".to_owned());
        let _ = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_test_writer()
            .try_init();
    });
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("plugins")).unwrap();
    Setup {
        os: Arc::new(Rehearsal::new(root.path().join("host"))),
        root,
        gpio: SimulatedGpio::default(),
        i2c: SimulatedI2c::default(),
        http: Arc::new(UnavailableService),
        api: Arc::new(UnavailableService),
        config: String::new(),
        compiler: None,
        allow_unpinned: false,
        board: "acme-board2",
        is_first_start: false,
        slots: 16,
        in_process: false,
        breaks: Arc::default(),
        store: None,
    }
}

/// Lists the file as one that the layout ships with, together with those of the same name that are already listed: it
/// may answer and provide everything in its manifest.
fn pin(root: &Path, content: &[u8]) {
    let Ok(manifest) = Manifest::from_wasm(content) else {
        return;
    };
    let list = root.join("stock-plugins.toml");
    let text = fs::read_to_string(&list).unwrap_or_default();
    let mut stock: toml::Table = text.parse().unwrap();
    let plugin = table(table(&mut stock, "plugins"), &manifest.name);
    let routes = manifest.routes.iter();
    let actions = manifest.provides.iter();
    let before = plugin.clone();
    add(plugin, "sha256", [compiled_code::digest(content)]);
    add(
        plugin,
        "routes",
        routes.map(|route| route.pattern.to_string()),
    );
    add(plugin, "provides", actions.map(|action| action.to_string()));
    add(plugin, "boards", manifest.boards);
    if *plugin != before {
        // Renamed into place, so that a partial file is never read.
        fs::write(root.join("stock-plugins.new"), stock.to_string()).unwrap();
        fs::rename(root.join("stock-plugins.new"), list).unwrap();
    }
}

/// Returns the table `key` of `parent`, and creates it if necessary.
fn table<'a>(parent: &'a mut toml::Table, key: &str) -> &'a mut toml::Table {
    let table = parent.entry(key).or_insert(toml::Table::new().into());
    table.as_table_mut().unwrap()
}

/// Adds missing values to the list `key`.
fn add(plugin: &mut toml::Table, key: &str, values: impl IntoIterator<Item = String>) {
    let list = plugin
        .entry(key)
        .or_insert(toml::Value::Array(Vec::new()))
        .as_array_mut()
        .unwrap();
    for value in values {
        let value = toml::Value::from(value);
        if !list.contains(&value) {
            list.push(value);
        }
    }
}

impl Setup {
    /// Puts a file into the plugin folder that the layout ships with, as far as plugins can tell.
    pub(crate) fn file(self, name: &str, content: &[u8]) -> Setup {
        pin(self.root.path(), content);
        self.strange_file(name, content)
    }

    /// Puts a file into the plugin folder that is not pinned.
    pub(crate) fn strange_file(self, name: &str, content: &[u8]) -> Setup {
        fs::write(self.root.path().join("plugins").join(name), content).unwrap();
        self
    }

    /// Adds the guest as the plugin `name`, with grants for all its imports and with `more` in its manifest.
    pub(crate) fn guest(self, name: &str, more: &str) -> Setup {
        let file = plugin(&manifest(name, &format!("{ALL}\n{more}")));
        let policy = self.root.path().join("policy.toml");
        let before = fs::read_to_string(&policy).unwrap_or_default();
        fs::write(policy, before + &grant_all(&[name])).unwrap();
        self.file(&format!("{name}.wasm"), &file)
    }

    pub(crate) fn policy(self, text: &str) -> Setup {
        fs::write(self.root.path().join("policy.toml"), text).unwrap();
        self
    }

    /// Sets the table `[plugins]` of the configuration.
    pub(crate) fn config(mut self, text: &str) -> Setup {
        self.config = text.to_owned();
        self
    }

    /// Has other hosts, and the device's own API.
    pub(crate) fn answers(mut self, http: impl HttpClient, api: impl DeviceApi) -> Setup {
        self.http = Arc::new(http);
        self.api = Arc::new(api);
        self
    }

    /// Lets files get what the policy grants to the names they claim, whether they are pinned or not.
    pub(crate) fn allow_unpinned(mut self) -> Setup {
        self.allow_unpinned = true;
        self
    }

    /// Uses a board of another type.
    pub(crate) fn board(mut self, device_type: &'static str) -> Setup {
        self.board = device_type;
        self
    }

    /// Uses another compiler.
    pub(crate) fn compiler(mut self, program: PathBuf) -> Setup {
        self.compiler = Some(program);
        self
    }

    /// Uses a compiler that never ends. Plugins that another device has compiled before are loaded anyway.
    pub(crate) fn compiler_that_hangs(mut self) -> Setup {
        use std::os::unix::fs::PermissionsExt as _;
        let program = self.root.path().join("compiler");
        fs::write(&program, "#!/bin/sh\nexec /bin/sleep 600\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        self.compiler = Some(program);
        self
    }

    /// Runs plugins in this process, where the clock can stand still for them as well.
    pub(crate) fn in_process(mut self) -> Setup {
        self.in_process = true;
        self
    }

    /// Starts for the first time in this boot.
    pub(crate) fn first_start(mut self) -> Setup {
        self.is_first_start = true;
        self
    }

    pub(crate) fn slots(mut self, slots: usize) -> Setup {
        self.slots = slots;
        self
    }

    /// Starts the device, and waits until all plugins are loaded.
    pub(crate) async fn start(self) -> Fixture {
        let fixture = self.begin().await;
        fixture.plugins.wait_until_loaded().await;
        fixture
    }

    /// Starts the device.
    pub(crate) async fn begin(self) -> Fixture {
        let root = self.root.path();
        let state_dir = root.join("state");
        fs::create_dir_all(&state_dir).unwrap();
        let store = self
            .store
            .unwrap_or_else(|| Arc::new(store::Store::open(&state_dir).unwrap().store));
        let (slots, memory) = (self.slots, 64 << 20);
        let runtime: Arc<dyn GuestRuntime> = if self.in_process {
            let resources = Resources {
                slots,
                memory,
                return_memory: None,
            };
            Arc::new(Runtime::new(resources).unwrap())
        } else {
            Arc::new(WorkerRuntime::start(WorkerConfig {
                program: program("supervisor-wasm"),
                slots,
                memory,
                control_groups: "platform-plugins".into(),
                requires_confinement: Arc::new(|| false),
            }))
        };
        let config = PluginsConfig {
            runtime,
            plugin_dirs: vec![root.join("plugins"), root.join("later/more")],
            policy: root.join("policy.toml"),
            stock_plugins: root.join("stock-plugins.toml"),
            allow_unpinned: self.allow_unpinned,
            cache: match self.compiler {
                Some(compiler) => cache_with(compiler),
                None => cache(),
            },
            state_dir,
            host_root: root.join("host"),
            plugin_config: toml::from_str(&self.config).unwrap(),
            services: plugins::HostServices {
                data: store.clone(),
                device: Arc::new(TestDevice {
                    board: self.board,
                    is_first_start: self.is_first_start,
                    breaks: self.breaks.clone(),
                }),
                cloud: Arc::new(plugins::NoCloud),
                os: self.os,
                locks: Arc::new(UnavailableService),
                host_name: Arc::new(UnavailableService),
                http: self.http,
                api: self.api,
                gpio: Arc::new(self.gpio),
                i2c: Arc::new(self.i2c),
                journal: Journal::new(flood(), "/"),
            },
            core_routes: vec![
                ("GET", "/v1/device"),
                ("*", "/v2/applications/:appId/state"),
            ],
            board_memory: 0,
        };
        let plugins = Plugins::start(config).unwrap();
        Fixture {
            plugins,
            store,
            breaks: self.breaks,
            root: self.root,
        }
    }
}

/// Running plugins.
pub(crate) struct Fixture {
    pub(crate) plugins: Plugins,
    pub(crate) store: Arc<store::Store>,
    /// If set, any task that asks for the device's identity panics.
    pub(crate) breaks: Arc<AtomicBool>,
    pub(crate) root: tempfile::TempDir,
}

impl Fixture {
    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.root.path().join(below)
    }

    /// Returns the answer to a caller with the device's key, streamed, once the plugin is loaded.
    pub(crate) async fn call<B>(&self, request: Request<B>) -> http::Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: std::fmt::Display,
    {
        self.call_by(CallerScope::DeviceKey, request).await
    }

    /// Returns the answer to a caller of this scope.
    pub(crate) async fn call_by<B>(
        &self,
        scope: CallerScope,
        request: Request<B>,
    ) -> http::Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: std::fmt::Display,
    {
        let (method, path) = (request.method(), request.uri().path());
        let served = self.plugins.wait_until_served(method, path);
        let served = tokio::time::timeout(DEADLINE, served);
        served.await.expect("it is loaded in time");
        match self.plugins.find(method, path) {
            RouteLookup::Route(route) => self.plugins.call(route, scope, request).await,
            other => panic!("{}: {other:?}", request.uri()),
        }
    }

    /// Returns status and body of `GET path`.
    pub(crate) async fn get(&self, path: &str) -> (StatusCode, String) {
        let request = Request::builder()
            .method(Method::GET)
            .uri(path)
            .body(Full::<Bytes>::default())
            .unwrap();
        text(self.call(request).await).await
    }

    /// Returns status and body of `GET path`, tried again while there is no room: the memory of a call before it is free
    /// only some time after its answer.
    pub(crate) async fn get_with_room(&self, path: &str) -> (StatusCode, String) {
        let answered = async {
            loop {
                let answer = self.get(path).await;
                if answer.0 != StatusCode::SERVICE_UNAVAILABLE {
                    return answer;
                }
                tokio::task::yield_now().await;
            }
        };
        let answer = tokio::time::timeout(DEADLINE, answered).await;
        answer.expect("there is room in time")
    }

    /// Returns status and body of `POST path`.
    pub(crate) async fn post(&self, path: &str, body: impl Into<Bytes>) -> (StatusCode, String) {
        let request = Request::builder()
            .method(Method::POST)
            .uri(path)
            .body(Full::new(body.into()))
            .unwrap();
        text(self.call(request).await).await
    }

    /// Returns the report on the plugin or file of this name.
    pub(crate) fn report(&self, name: &str) -> PluginReport {
        let all = self.plugins.report();
        all.iter()
            .find(|plugin| plugin.name == name)
            .unwrap_or_else(|| panic!("{name}: {all:?}"))
            .clone()
    }

    /// Restores the version of a plugin that served before.
    pub(crate) fn rollback(
        &self,
        plugin: &str,
    ) -> Result<plugins::Rollback, plugins::RollbackError> {
        let device = plugins::RollbackFolders {
            state_dir: &self.path("state"),
            plugin_dirs: &[self.path("plugins")],
            policy: &self.path("policy.toml"),
            stock_plugins: &self.path("stock-plugins.toml"),
            host_root: &self.path("host"),
            allow_unpinned: false,
        };
        plugins::rollback(plugin, device)
    }

    /// Waits until this content is kept as the latest version of its file.
    pub(crate) async fn until_kept(&self, content: &[u8]) {
        self.until("it is kept", |_| self.is_kept(content)).await;
    }

    /// Returns whether this content is kept as the latest version of its file.
    pub(crate) fn is_kept(&self, content: &[u8]) -> bool {
        let index = self.path("state/plugin-versions/index.json");
        let latest = format!("\"latest\":\"{}\"", compiled_code::digest(content));
        fs::read_to_string(&index).is_ok_and(|index| index.contains(&latest))
    }

    /// Makes the layout ship with this file.
    pub(crate) fn pin(&self, content: &[u8]) {
        pin(self.root.path(), content);
    }

    /// Restarts the same device.
    pub(crate) async fn restart(self) -> Fixture {
        let Fixture {
            plugins,
            store,
            root,
            ..
        } = self;
        plugins.shutdown().await;
        drop(plugins);
        let again = Setup {
            store: Some(store),
            os: Arc::new(Rehearsal::new(root.path().join("host"))),
            root,
            ..setup()
        };
        again.start().await
    }

    /// Replaces a plugin as a careful installer does: pinned, written under another name, then renamed.
    pub(crate) fn replace(&self, name: &str, content: &[u8]) {
        self.pin(content);
        let folder = self.path("plugins");
        let beside = folder.join("new");
        fs::write(&beside, content).unwrap();
        fs::rename(beside, folder.join(name)).unwrap();
    }

    /// Replaces a plugin as `install` and `cp --remove-destination` do: pinned, removed, then written under its name.
    pub(crate) fn remove_and_write(&self, name: &str, content: &[u8]) {
        self.pin(content);
        let file = self.path("plugins").join(name);
        fs::remove_file(&file).unwrap();
        fs::write(file, content).unwrap();
    }

    /// Waits until `condition` holds.
    pub(crate) async fn until(&self, what: &str, condition: impl Fn(&Plugins) -> bool) {
        let deadline = tokio::time::Instant::now() + DEADLINE;
        while !condition(&self.plugins) {
            assert!(
                tokio::time::Instant::now() < deadline,
                "{what}: {:#?}",
                self.plugins.report()
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Returns status and whole body; if a stream ended early, the part before that, with `(broken)`.
pub(crate) async fn text(response: http::Response<Body>) -> (StatusCode, String) {
    let status = response.status();
    let mut body = response.into_body();
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => bytes.extend_from_slice(&frame.into_data().unwrap_or_default()),
            Err(_) => {
                bytes.extend_from_slice(b"(broken)");
                break;
            }
        }
    }
    (status, String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the body of a failed call's answer.
pub(crate) fn failure(message: &str) -> String {
    serde_json::json!({ "status": "failed", "message": message }).to_string()
}

/// Creates an LED in the shape of the kernel's.
pub(crate) fn led(class: &Path, name: &str) -> PathBuf {
    let folder = class.join(name);
    fs::create_dir_all(&folder).unwrap();
    for (file, content) in [
        ("brightness", "7\n"),
        ("max_brightness", "100\n"),
        ("trigger", "none [mmc0] timer\n"),
    ] {
        fs::write(folder.join(file), content).unwrap();
    }
    folder
}

/// Returns brightness and trigger of an LED.
pub(crate) fn shown(led: &Path) -> String {
    let read = |name: &str| {
        fs::read_to_string(led.join(name))
            .unwrap()
            .trim()
            .to_owned()
    };
    format!("{} {}", read("brightness"), read("trigger"))
}
