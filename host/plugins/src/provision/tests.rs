use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use plugin_protocol::wit::report::FieldValue;
use plugin_protocol::{
    ActionsCall, ApiError, ApiRequest, ApiSend, CallerScope, CloudQueue, CloudRecords, DbusCall,
    DbusError, DbusMethodCall, DeviceIdentity, DeviceState, FIELD_UNIT, GpioEdge, GpioRead,
    GpioWaitEdge, GpioWrite, Handle, HostNameGet, HostNameSet, HttpRequest, HttpSend, I2cReadByte,
    I2cReadWord, I2cWriteByte, I2cWriteRead, I2cWriteWord, Identify, IdentifyWindow, Identity,
    JournalError, JournalOpen, JournalOptions, JournalRead, LedError, LedNames, LedOpen, LedSet,
    LockAcquire, MetricsAddToCounter, MetricsSetGauge, OpenLed, Parity, Piece, ProxyCall,
    ProxyRequest, ReportRemove, ReportSet, SerialError, SerialOpen, SerialRead, SerialSettings,
    SerialWrite, StoreCompareAndSet, StoreDelete, StoreGet, StoreKeys, StoreSet, StoreSetFor,
    UnitsRestart, UnitsState,
};

use super::*;
use crate::bounds::{HOST_LINES_AT_ONCE, RESTARTS_AT_ONCE};
use crate::config::{DataError, Device, NoCloud, PluginData, ValueChange};
use crate::hardware::Hardware;
use crate::hardware::led_memory::LedMemory;
use crate::hardware::leds::Leds;
use crate::identify::Identify as IdentifyAction;
use crate::log_lines::PluginLogs;
use crate::plugin_fields::{FieldBudget, PluginFields};
use crate::plugin_metrics::PluginMetrics;
use crate::plugin_shares::PluginShares;
use crate::policy::Grants;

mod board;

#[derive(Default)]
pub(crate) struct TestDevice {
    /// How many failures of plugins it has received for its events.
    pub(crate) faults: AtomicUsize,
}

impl Device for TestDevice {
    fn identity(&self) -> Identity {
        let text = |text: &str| text.to_owned();
        Identity {
            uuid: text("0"),
            name: text("kitchen"),
            device_type: text("board"),
            arch: text("aarch64"),
        }
    }

    fn state(&self) -> serde_json::Value {
        serde_json::json!({})
    }

    fn faulted(&self, _: &str, _: &str) {
        self.faults.fetch_add(1, SeqCst);
    }
}

/// A store without values.
struct NoData {
    /// How many files may still be written next to it.
    writes_left: AtomicUsize,
}

impl PluginData for NoData {
    fn get(&self, _: &str, _: &str) -> Result<Option<Vec<u8>>, DataError> {
        Ok(None)
    }

    fn change(&self, _: &str, _: &str, _: &ValueChange<'_>) -> Result<bool, DataError> {
        Ok(true)
    }

    fn delete(&self, _: &str, _: &str) -> Result<(), DataError> {
        Ok(())
    }

    fn keys(&self, _: &str, _: &str) -> Result<Vec<String>, DataError> {
        Ok(Vec::new())
    }

    fn take_write(&self, _: &str) -> Result<(), String> {
        let take = |left: usize| left.checked_sub(1);
        let left = self.writes_left.fetch_update(SeqCst, SeqCst, take);
        left.map(drop)
            .map_err(|_| "the plugin writes too much".to_owned())
    }
}

/// A plugin with these grants on a device with an LED, whose journal command prints endlessly.
pub(crate) struct Fixture {
    pub(crate) context: Arc<PluginContext>,
    pub(crate) device: Arc<TestDevice>,
    data: Arc<NoData>,
    _root: tempfile::TempDir,
}

impl Fixture {
    pub(crate) fn new(policy: &str) -> Fixture {
        let root = tempfile::tempdir().unwrap();
        let led = root.path().join("leds/ACT");
        fs::create_dir_all(&led).unwrap();
        fs::write(led.join("brightness"), "7\n").unwrap();
        let device = Arc::<TestDevice>::default();
        let data = Arc::new(NoData {
            writes_left: AtomicUsize::new(usize::MAX),
        });
        let flood = Path::new(env!("CARGO_MANIFEST_DIR")).join("../os/tests/programs/flood");
        let journal = os::Journal::new(flood, root.path());
        let context = PluginContext {
            is_developers: false,
            name: "acme".into(),
            config: String::new(),
            grants: toml::from_str::<Grants>(policy).unwrap(),
            share: PluginShares::new(PluginLogs::default(), journal.clone()).of("acme"),
            services: Arc::new(crate::HostServices {
                device: Arc::clone(&device) as _,
                data: Arc::clone(&data) as _,
                cloud: Arc::new(NoCloud),
                os: Arc::new(os::Rehearsal::new(root.path())),
                locks: Arc::new(crate::UnavailableService),
                host_name: Arc::new(crate::UnavailableService),
                http: Arc::new(crate::UnavailableService),
                api: Arc::new(crate::UnavailableService),
                gpio: Arc::new(crate::UnavailableService),
                i2c: Arc::new(crate::UnavailableService),
                journal,
            }),
            metrics: PluginMetrics::default(),
            fields: PluginFields::new(&FieldBudget::default()),
            hardware: Hardware {
                leds: Leds {
                    folder: root.path().join("leds"),
                    memory: Arc::new(LedMemory::open(root.path())),
                },
                gpio_lines: Arc::default(),
                i2c_turns: Arc::default(),
            },
        };
        Fixture {
            context: Arc::new(context),
            device,
            data,
            _root: root,
        }
    }

    async fn call(&self, holdings: &Holdings, call: impl Into<Call>) -> Result<Answer, Refusal> {
        let origin = Origin::outside(CallerScope::DeviceKey);
        carry_out(&self.context, holdings, &origin, call.into()).await
    }

    async fn try_open_led(&self, holdings: &Holdings) -> Result<OpenLed, LedError> {
        self.try_open(holdings, "ACT").await
    }

    async fn try_open(&self, holdings: &Holdings, led: &str) -> Result<OpenLed, LedError> {
        let name = led.to_owned();
        match self.call(holdings, LedOpen { name }).await {
            Ok(Answer::LedOpen(answer)) => answer,
            other => panic!("it is granted: {other:?}"),
        }
    }

    async fn open_led(&self, holdings: &Holdings) -> Handle {
        let led = self.try_open_led(holdings).await;
        led.unwrap().light
    }
}

/// Carries out a call of an instance of the plugin, on a device without others.
async fn carry_out(
    plugin: &Arc<PluginContext>,
    holdings: &Holdings,
    origin: &Origin,
    call: Call,
) -> Result<Answer, Refusal> {
    let actions = Actions::default();
    let host = InstanceCall {
        plugin,
        holdings,
        origin,
        identify: &IdentifyAction::new(&actions),
        actions: &actions,
    };
    host.carry_out(call).await
}

/// One call of each kind except [`IdentifyWindow`], which every plugin may call.
fn calls() -> Vec<Call> {
    let text = |text: &str| text.to_owned();
    let handle = Handle(1);
    vec![
        DeviceIdentity {}.into(),
        DeviceState {}.into(),
        StoreGet { key: text("k") }.into(),
        StoreSet {
            key: text("k"),
            value: Vec::new(),
        }
        .into(),
        StoreSetFor {
            key: text("k"),
            value: Vec::new(),
            milliseconds: 1,
        }
        .into(),
        StoreCompareAndSet {
            key: text("k"),
            expected: None,
            value: None,
            lifetime: None,
        }
        .into(),
        StoreDelete { key: text("k") }.into(),
        StoreKeys { prefix: text("") }.into(),
        LedNames {}.into(),
        LedOpen { name: text("ACT") }.into(),
        LedSet {
            light: handle,
            brightness: 1,
        }
        .into(),
        CloudRecords {
            kind: text("device_tag"),
            fields: vec![text("value")],
        }
        .into(),
        CloudQueue {
            kind: text("device_tag"),
            values: Vec::new(),
        }
        .into(),
        UnitsState {
            unit: text("a.service"),
        }
        .into(),
        UnitsRestart {
            unit: text("a.service"),
        }
        .into(),
        MetricsSetGauge {
            name: text("level"),
            labels: Vec::new(),
            value: 0.5,
        }
        .into(),
        MetricsAddToCounter {
            name: text("refills_total"),
            labels: Vec::new(),
            increment: 1,
        }
        .into(),
        ReportSet {
            name: text("level"),
            value: FieldValue::Boolean(true),
            unit: None,
        }
        .into(),
        ReportRemove {
            name: text("level"),
        }
        .into(),
        JournalOpen {
            options: JournalOptions::default(),
        }
        .into(),
        JournalRead {
            reader: handle,
            used: 0,
        }
        .into(),
        Identify {}.into(),
        ProxyRequest {
            call: ProxyCall::Get,
        }
        .into(),
        LockAcquire { force: true }.into(),
        HostNameGet {}.into(),
        HostNameSet { name: text("a") }.into(),
        ActionsCall {
            action: text("acme/show"),
            input: Vec::new(),
        }
        .into(),
        HttpSend {
            request: HttpRequest {
                method: text("GET"),
                url: text("https://acme.example/"),
                headers: Vec::new(),
                body: Vec::new(),
            },
        }
        .into(),
        ApiSend {
            request: ApiRequest {
                method: text("GET"),
                path: text("/ping"),
                content_type: None,
                body: Vec::new(),
            },
        }
        .into(),
        SerialOpen {
            name: text("/dev/ttyS0"),
            settings: SERIAL,
        }
        .into(),
        SerialRead {
            port: handle,
            most: 1,
            milliseconds: 0,
        }
        .into(),
        SerialWrite {
            port: handle,
            bytes: Vec::new(),
        }
        .into(),
        DbusCall { call: hostnamed() }.into(),
        GpioRead {
            name: text("relay"),
        }
        .into(),
        GpioWrite {
            name: text("relay"),
            on: true,
        }
        .into(),
        GpioWaitEdge {
            name: text("door"),
            edge: GpioEdge::Both,
            milliseconds: 0,
        }
        .into(),
        I2cWriteRead {
            name: text("sensor"),
            bytes: Vec::new(),
            read_length: 1,
        }
        .into(),
        I2cReadByte {
            name: text("sensor"),
            register: 0,
        }
        .into(),
        I2cReadWord {
            name: text("sensor"),
            register: 0,
        }
        .into(),
        I2cWriteByte {
            name: text("sensor"),
            register: 0,
            value: 0,
        }
        .into(),
        I2cWriteWord {
            name: text("sensor"),
            register: 0,
            value: 0,
        }
        .into(),
    ]
}

const SERIAL: SerialSettings = SerialSettings {
    baud: 9600,
    data_bits: 8,
    parity: Parity::None,
    stop_bits: 1,
};

fn hostnamed() -> DbusMethodCall {
    let text = |text: &str| text.to_owned();
    DbusMethodCall {
        service: text("org.freedesktop.hostname1"),
        path: text("/org/freedesktop/hostname1"),
        interface: text("org.freedesktop.DBus.Properties"),
        member: text("Get"),
        signature: text("ss"),
        arguments: text("[\"org.freedesktop.hostname1\",\"Hostname\"]"),
    }
}

#[tokio::test]
async fn a_plugin_calls_the_methods_that_the_policy_names_and_no_others() {
    let policy = "grants = [\"dbus\"]\n[[dbus]]\nservice = \"org.freedesktop.hostname1\"\n\
         paths = [\"/org/freedesktop/hostname1\"]\nmembers = [\"org.freedesktop.DBus.Properties.Get\"]\n";
    let fixture = Fixture::new(policy);
    let ask = async |call: DbusMethodCall| {
        let call = DbusCall { call };
        match fixture.call(&Holdings::default(), call).await {
            Ok(Answer::DbusCall(answer)) => answer,
            other => panic!("{other:?}"),
        }
    };
    // This simulated device has no services: a call that gets that far was permitted.
    let through = ask(hostnamed()).await;
    assert!(matches!(through, Err(DbusError::Refused(_))), "{through:?}");
    let others = [
        DbusMethodCall {
            member: "Set".to_owned(),
            ..hostnamed()
        },
        DbusMethodCall {
            interface: "org.freedesktop.hostname1".to_owned(),
            ..hostnamed()
        },
        DbusMethodCall {
            path: "/org/freedesktop/hostname1/x".to_owned(),
            ..hostnamed()
        },
        DbusMethodCall {
            service: "org.freedesktop.login1".to_owned(),
            ..hostnamed()
        },
    ];
    for other in others {
        let refused = ask(other.clone()).await;
        assert!(
            matches!(refused, Err(DbusError::NotGranted(_))),
            "{other:?} {refused:?}"
        );
    }
    let long = DbusMethodCall {
        arguments: " ".repeat(plugin_protocol::DBUS_ARGUMENTS + 1),
        ..hostnamed()
    };
    let refused = ask(long).await;
    assert!(matches!(refused, Err(DbusError::Invalid(_))), "{refused:?}");
}

#[tokio::test]
async fn a_plugin_requests_the_routes_that_the_policy_names_and_no_others() {
    let fixture = Fixture::new("grants = [\"api\"]\napi = [\"GET /v2/state/status\"]\n");
    let ask = async |origin: &Origin, method: &str, path: &str| {
        let request = ApiRequest {
            method: method.to_owned(),
            path: path.to_owned(),
            content_type: None,
            body: Vec::new(),
        };
        let call = Call::from(ApiSend { request });
        let holdings = Holdings::default();
        match carry_out(&fixture.context, &holdings, origin, call).await {
            Ok(Answer::ApiSend(answer)) => answer,
            other => panic!("{other:?}"),
        }
    };
    let outside = Origin::outside(CallerScope::DeviceKey);
    // This device has no API: a call that gets that far was permitted.
    let through = |answer: &Result<_, ApiError>| match answer {
        Err(ApiError::Unavailable(why)) => why.contains("is not available"),
        _ => false,
    };
    let answer = ask(&outside, "GET", "/v2/state/status?apikey=x").await;
    assert!(through(&answer), "{answer:?}");
    for (method, path) in [
        ("POST", "/v2/state/status"),
        ("GET", "/v1/device"),
        ("GET", "/v2/state/status/../../../v1/device"),
    ] {
        let answer = ask(&outside, method, path).await;
        assert!(
            matches!(answer, Err(ApiError::NotGranted(_))),
            "{method} {path} {answer:?}"
        );
    }
    for (method, path) in [
        ("CONNECT", "/v2/state/status"),
        ("GET", "v2/state/status"),
        ("GET", "http://other.example/v2/state/status"),
        ("GET", "//other.example/v2/state/status"),
        ("GET", "/v2/state/status \r\nHost: x"),
        ("GET", "*"),
        ("GET", ""),
    ] {
        let answer = ask(&outside, method, path).await;
        let is_refused = matches!(answer, Err(ApiError::Invalid(_) | ApiError::NotGranted(_)));
        assert!(is_refused, "{method} {path} {answer:?}");
    }
    // Plugins do not wait for each other endlessly.
    let mut origin = outside;
    let depths = (0..10).take_while(|_| {
        origin = origin.through("acme");
        origin.depth < 10
    });
    let mut answers = Vec::new();
    let mut deep = Origin::outside(CallerScope::DeviceKey);
    for _ in depths {
        answers.push(through(&ask(&deep, "GET", "/v2/state/status").await));
        deep = deep.through("acme");
    }
    assert_eq!(
        answers,
        [true, true, true, true, false, false, false, false, false]
    );
}

#[tokio::test]
async fn a_plugin_opens_the_serial_ports_that_the_policy_names_and_no_others() {
    let fixture = Fixture::new("grants = [\"serial\"]\nserial = [\"/dev/ttyAcme0\"]\n");
    let open = async |name: &str| {
        let open = SerialOpen {
            name: name.to_owned(),
            settings: SERIAL,
        };
        match fixture.call(&Holdings::default(), open).await {
            Ok(Answer::SerialOpen(answer)) => answer,
            other => panic!("{other:?}"),
        }
    };
    let missing = open("/dev/ttyAcme0").await;
    assert!(
        matches!(missing, Err(SerialError::NotFound(_))),
        "{missing:?}"
    );
    for name in [
        "/dev/tty",
        "/dev/ttyAcme0/",
        "/dev//ttyAcme0",
        "/dev/../dev/ttyAcme0",
        "",
    ] {
        let refused = open(name).await;
        assert!(
            matches!(refused, Err(SerialError::NotGranted(_))),
            "{name} {refused:?}"
        );
    }
}

#[tokio::test]
async fn each_call_is_checked_against_the_grants_of_the_plugin_whose_it_is() {
    let fixture = Fixture::new("");
    let holdings = Holdings::default();
    for call in calls() {
        let (name, capability) = (call.name(), call.capability().unwrap());
        let refused = fixture.call(&holdings, call).await.unwrap_err();
        let expected = Refusal::Grant {
            plugin: "acme".to_owned(),
            call: name,
            capability,
        };
        assert_eq!(refused, expected);
        // None of the other grants helps.
        let others: Vec<_> = calls()
            .iter()
            .filter_map(Call::capability)
            .filter(|other| *other != capability)
            .map(|other| format!("\"{other}\""))
            .collect();
        let fixture = Fixture::new(&format!("grants = [{}]", others.join(", ")));
        let again = calls().into_iter().find(|call| call.name() == name);
        let refused = fixture.call(&holdings, again.unwrap()).await;
        assert_eq!(refused, Err(expected));
    }
    let window = fixture.call(&holdings, IdentifyWindow {}).await;
    assert_eq!(window, Ok(Answer::IdentifyWindow(0)));
}

#[tokio::test]
async fn granted_calls_are_executed() {
    let capabilities: std::collections::BTreeSet<_> =
        calls().iter().filter_map(Call::capability).collect();
    for capability in capabilities {
        let fixture = Fixture::new(&format!("grants = [\"{capability}\"]"));
        let granted = calls().into_iter();
        for call in granted.filter(|call| call.capability() == Some(capability)) {
            let name = call.name();
            let answer = fixture.call(&Holdings::default(), call).await;
            let done = matches!(answer, Ok(_) | Err(Refusal::Handle(_)));
            assert!(done, "{name}: {answer:?}");
        }
    }
}

#[tokio::test]
async fn a_handle_is_of_the_instance_that_was_given_it_and_of_its_kind() {
    let fixture = Fixture::new("grants = [\"led\", \"journal\"]");
    let (own, others) = (Holdings::default(), Holdings::default());
    let light = fixture.open_led(&own).await;
    let set = |light| LedSet {
        light,
        brightness: 3,
    };
    let refused = Err(Refusal::Handle(light));
    assert_eq!(fixture.call(&others, set(light)).await, refused);
    let read = JournalRead {
        reader: light,
        used: 0,
    };
    assert_eq!(fixture.call(&own, read).await, refused);
    let done = fixture.call(&own, set(light)).await;
    assert_eq!(done, Ok(Answer::LedSet(Ok(()))));
    own.release(light);
    assert_eq!(fixture.call(&own, set(light)).await, refused);
}

#[tokio::test]
async fn a_piece_of_the_journal_is_given_until_it_is_used() {
    let fixture = Fixture::new("grants = [\"journal\"]");
    let holdings = Holdings::default();
    let open = JournalOpen {
        options: JournalOptions::default(),
    };
    let Ok(Answer::JournalOpen(Ok(reader))) = fixture.call(&holdings, open).await else {
        panic!("it is there");
    };
    let read = async |used: u64| {
        let read = JournalRead { reader, used };
        match fixture.call(&holdings, read).await {
            Ok(Answer::JournalRead(Piece::Bytes(bytes))) => Ok(bytes),
            Err(refusal) => Err(refusal),
            other => panic!("{other:?}"),
        }
    };
    let first = read(0).await.unwrap();
    assert!(first.starts_with(b"a line of the journal\n"));
    assert_eq!(read(0).await.unwrap(), first);
    assert_eq!(read(5).await.unwrap(), first[5..]);
    let end = first.len() as u64;
    assert_eq!(
        read(end + 1).await,
        Err(Refusal::Position { used: end + 1 })
    );
    let second = read(end).await.unwrap();
    let line = end % 22;
    let line = &b"a line of the journal\n"[usize::try_from(line).unwrap()..];
    assert!(second.starts_with(line), "goes on where the first ended");
    assert_eq!(read(0).await, Err(Refusal::Position { used: 0 }));
}

#[tokio::test(start_paused = true)]
async fn each_line_about_what_a_plugin_makes_the_host_do_is_one_of_its_share() {
    let unit = "a.service".to_owned();
    let restart: Call = UnitsRestart { unit }.into();
    // It may not override locks.
    let acquire: Call = LockAcquire { force: true }.into();
    let units = "grants = [\"units\"]\nunits = [\"a.service\"]\n";
    for (policy, call, is_restart) in [
        (units, restart, true),
        ("grants = [\"update-lock\"]\n", acquire, false),
    ] {
        let fixture = Fixture::new(policy);
        let holdings = Holdings::default();
        for _ in 0..3 {
            fixture.call(&holdings, call.clone()).await.unwrap();
        }
        let log = &fixture.context.share.log;
        let (share, at_once, other) = if is_restart {
            (&log.restarts, RESTARTS_AT_ONCE, &log.host_lines)
        } else {
            (&log.host_lines, HOST_LINES_AT_ONCE, &log.restarts)
        };
        let left = (0..).take_while(|_| share.take("acme")).count();
        assert_eq!(left, (at_once / 2) as usize - 3, "{policy}");
        // It is done without a line as well, and hides neither the plugin's own lines nor its failures, nor which units
        // it restarts.
        fixture.call(&holdings, call.clone()).await.unwrap();
        assert!(log.lines.take("acme") && log.failures.take("acme") && other.take("acme"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_plugin_has_half_of_the_readers_of_the_journal() {
    let fixture = Fixture::new("grants = [\"journal\"]");
    let holdings = Holdings::default();
    let open = async || {
        let options = JournalOptions::default();
        match fixture.call(&holdings, JournalOpen { options }).await {
            Ok(Answer::JournalOpen(answer)) => answer,
            other => panic!("{other:?}"),
        }
    };
    for _ in 0..16 {
        open().await.unwrap();
    }
    let expected = "the plugin `acme` has 16 readers of the journal, the maximum: try again later";
    assert_eq!(open().await, Err(JournalError::Busy(expected.to_owned())));
}

/// Runs on a runtime with one thread, which has to be free for the LED's reader: that is what ends the wait.
#[test]
fn an_led_whose_driver_takes_its_time_holds_up_nobody() {
    let (done, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_time();
        runtime.build().unwrap().block_on(a_slow_led());
        done.send(()).unwrap();
    });
    let others = ended.recv_timeout(Duration::from_secs(30));
    others.expect("others wait for the LED");
}

async fn a_slow_led() {
    let fixture = Fixture::new("grants = [\"led\"]");
    let holdings = Holdings::default();
    let light = fixture.open_led(&holdings).await;
    // From now on, each write waits until there is a reader.
    let brightness = fixture.context.hardware.leds.folder.join("ACT/brightness");
    fs::remove_file(&brightness).unwrap();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &brightness, kind, mode, 0).unwrap();
    let read = || {
        let brightness = brightness.clone();
        tokio::task::spawn_blocking(move || fs::read_to_string(brightness).unwrap())
    };
    let brightness = 3;
    let set = fixture.call(&holdings, LedSet { light, brightness });
    let (set, shown) = tokio::join!(set, async { read().await });
    assert_eq!(set, Ok(Answer::LedSet(Ok(()))));
    assert_eq!(shown.unwrap(), "3");
    holdings.release(light);
    assert_eq!(read().await.unwrap(), "7", "what it showed before");
}

#[tokio::test]
async fn an_led_that_was_let_go_can_be_had_at_once() {
    let fixture = Fixture::new("grants = [\"led\"]");
    let holdings = Holdings::default();
    for _ in 0..100 {
        let light = fixture.open_led(&holdings).await;
        holdings.release(light);
    }
}

#[tokio::test]
async fn an_led_takes_a_write_of_the_plugin_only_if_a_note_about_it_is_written() {
    let fixture = Fixture::new("grants = [\"led\"]");
    let folder = fixture.context.hardware.leds.folder.clone();
    fs::create_dir(folder.join("PWR")).unwrap();
    fs::write(folder.join("PWR/brightness"), "5\n").unwrap();
    let writes_left = &fixture.data.writes_left;
    writes_left.store(2, SeqCst);
    let holdings = Holdings::default();
    // Whether it opens one LED for each flash or several in turn: their notes are still there.
    for _ in 0..100 {
        for name in ["ACT", "PWR"] {
            let led = fixture.try_open(&holdings, name).await.unwrap();
            // Nothing is written for an LED that is held.
            let held = fixture.try_open(&holdings, name).await;
            assert!(matches!(held, Err(LedError::Busy(_))), "{held:?}");
            holdings.release(led.light);
        }
    }
    assert_eq!(writes_left.load(SeqCst), 0);

    // If it shows something else in the meantime, its note has to change.
    let light = fixture.open_led(&holdings).await;
    let brightness = 3;
    let set = fixture.call(&holdings, LedSet { light, brightness }).await;
    assert_eq!(set, Ok(Answer::LedSet(Ok(()))));
    holdings.release(light);
    let brightness = folder.join("ACT/brightness");
    let restored = async {
        while fs::read_to_string(&brightness).unwrap() != "7" {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let restored = tokio::time::timeout(Duration::from_secs(60), restored).await;
    restored.unwrap();
    fs::write(&brightness, "9").unwrap();
    let refused = fixture.try_open_led(&holdings).await.unwrap_err();
    let expected = "LED `ACT`: opening it writes a note to the disk, and the plugin writes too much: \
         open it less often, or keep it open";
    assert_eq!(refused, LedError::Other(expected.to_owned()));
    // It stays free, and shows what it did.
    assert_eq!(fs::read_to_string(&brightness).unwrap(), "9");
    writes_left.store(1, SeqCst);
    fixture.open_led(&holdings).await;
    assert_eq!(writes_left.load(SeqCst), 0);
}

#[tokio::test]
async fn the_unit_of_a_field_is_a_short_line_of_plain_text() {
    let fixture = Fixture::new("grants = [\"report\"]");
    let holdings = Holdings::default();
    let long = "a".repeat(FIELD_UNIT + 1);
    for (unit, is_taken) in [
        ("%", true),
        ("\u{b0}C", true),
        (&long[1..], true),
        ("", false),
        ("k\nW", false),
        ("\u{202e}V", false),
        (&long, false),
    ] {
        let field = ReportSet {
            name: "level".to_owned(),
            value: FieldValue::Number(1.0),
            unit: Some(unit.to_owned()),
        };
        let Ok(Answer::ReportSet(set)) = fixture.call(&holdings, field).await else {
            panic!("it is granted");
        };
        assert_eq!(set.is_ok(), is_taken, "{unit:?}");
    }
}
