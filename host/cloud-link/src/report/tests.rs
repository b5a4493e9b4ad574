use std::collections::VecDeque;
use std::sync::Mutex;

use futures::FutureExt;
use http::StatusCode;
use model::DeviceUuid;
use secure_fs::{Access, SecureDir};
use tokio::sync::Notify;

use super::*;
use crate::client::CloudError;
use crate::poll::{Settings, TargetRefusal};

const UUID: &str = "0123456789abcdef0123456789abcdef";

/// A device whose state is set by the test, and a cloud with given answers; the clock is paused.
struct World {
    uuid: DeviceUuid,
    begun: Instant,
    state: Mutex<Value>,
    changed: Notify,
    answers: Mutex<VecDeque<CloudError>>,
    sent: Mutex<Vec<String>>,
}

impl World {
    fn set(&self, name: &str, value: Value) {
        self.state.lock().unwrap()[name] = value;
        self.changed.notify_one();
    }

    fn sent(&self) -> Vec<String> {
        std::mem::take(&mut *self.sent.lock().unwrap())
    }
}

impl StateSource for World {
    fn report(&self) -> BoxFuture<'_, Map<String, Value>> {
        let state = self.state.lock().unwrap().as_object().unwrap().clone();
        async { state }.boxed()
    }

    fn changed(&self) -> BoxFuture<'_, ()> {
        self.changed.notified().boxed()
    }
}

impl Sink for World {
    fn uuid(&self) -> &DeviceUuid {
        &self.uuid
    }

    fn patch<'a>(
        &'a self,
        what: &'a str,
        body: &'a Value,
        _: Duration,
    ) -> BoxFuture<'a, Result<(), CloudError>> {
        async move {
            let at = self.begun.elapsed().as_secs();
            self.sent
                .lock()
                .unwrap()
                .push(format!("{at} {what} {}", body[UUID]));
            match self.answers.lock().unwrap().pop_front() {
                Some(error) => Err(error),
                None => Ok(()),
            }
        }
        .boxed()
    }
}

impl Device for World {
    fn take(&self, _: Value, _: bool) -> BoxFuture<'_, Result<(), TargetRefusal>> {
        async { Ok(()) }.boxed()
    }

    fn unchanged(&self) {}

    fn apply_again(&self, _: bool, _: bool) {}

    fn checking(&self, _: bool) {}

    fn settings(&self) -> Settings {
        Settings {
            interval: Duration::from_secs(60),
            request_timeout: GAP,
            instant_updates: true,
            connectivity_check: false,
        }
    }
}

fn begin(folder: &tempfile::TempDir, state: Value) -> (Arc<World>, tokio_util::sync::DropGuard) {
    let world = Arc::new(World {
        uuid: UUID.parse().unwrap(),
        begun: Instant::now(),
        state: Mutex::new(state),
        changed: Notify::new(),
        answers: Mutex::default(),
        sent: Mutex::default(),
    });
    let (ready, stop) = (CancellationToken::new(), CancellationToken::new());
    ready.cancel();
    let cache = SecureDir::open(folder.path(), Access::Private).unwrap();
    let cache = cache.file("cache");
    report(
        world.clone(),
        world.clone(),
        world.clone(),
        Some(cache),
        ready,
        stop.clone(),
    );
    (world, stop.drop_guard())
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn changes_are_reported_at_most_every_ten_seconds_and_measures_every_five_minutes() {
    let folder = tempfile::tempdir().unwrap();
    let (world, _stop) = begin(&folder, json!({ "status": "Idle", "cpu_usage": 1 }));
    pass(1).await;
    assert_eq!(world.sent(), [r#"0 state {"status":"Idle","cpu_usage":1}"#]);
    for progress in 1..=9 {
        world.set("apps", json!({ "x": progress }));
        pass(1).await;
    }
    world.set("cpu_usage", json!(90));
    pass(4).await;
    assert_eq!(
        world.sent(),
        [r#"10 state {"cpu_usage":90,"apps":{"x":9}}"#]
    );
    for seconds in 0..10 {
        world.set("cpu_usage", json!(seconds % 2 * 50));
        pass(50).await;
    }
    world.set("cpu_usage", json!(99));
    pass(300).await;
    assert_eq!(
        world.sent(),
        [
            r#"314 state {"cpu_usage":0}"#,
            r#"614 state {"cpu_usage":99}"#
        ]
    );
    pass(3600).await;
    assert_eq!(world.sent(), Vec::<String>::new());
}

fn levels(level: u64) -> Value {
    json!({ "gauge": { "level": { "value": level } } })
}

#[tokio::test(start_paused = true)]
async fn a_plugin_field_that_changes_each_second_is_reported_every_five_minutes() {
    let folder = tempfile::tempdir().unwrap();
    let (world, _stop) = begin(
        &folder,
        json!({ "status": "Idle", "plugin_fields": levels(0) }),
    );
    for level in 1..=620 {
        pass(1).await;
        world.set("plugin_fields", levels(level));
    }
    let sent = world.sent();
    assert_eq!(sent.len(), 3, "{sent:?}");
    assert!(
        sent[1].starts_with("300 state {\"plugin_fields\":"),
        "{sent:?}"
    );
    // The removal of a plugin is reported at once, and so is the first change after a while.
    world.set("plugin_fields", json!({}));
    pass(20).await;
    assert_eq!(world.sent(), [r#"620 state {"plugin_fields":{}}"#]);
    pass(600).await;
    world.set("plugin_fields", levels(7));
    pass(1).await;
    assert_eq!(
        world.sent(),
        [r#"1240 state {"plugin_fields":{"gauge":{"level":{"value":7}}}}"#]
    );
}

#[tokio::test(start_paused = true)]
async fn fields_of_plugins_that_the_cloud_refuses_do_not_keep_it_from_knowing_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let (world, _stop) = begin(
        &folder,
        json!({ "status": "Idle", "plugin_fields": levels(0) }),
    );
    world.answers.lock().unwrap().push_back(CloudError::Status {
        status: StatusCode::BAD_REQUEST,
        retry_after: None,
        reason: String::new(),
    });
    pass(600).await;
    let sent = world.sent();
    assert_eq!(
        sent,
        [
            r#"0 state {"status":"Idle","plugin_fields":{"gauge":{"level":{"value":0}}}}"#,
            r#"10 state {"status":"Idle"}"#,
        ]
    );
    world.set("plugin_fields", levels(1));
    pass(10).await;
    assert_eq!(
        world.sent(),
        [r#"600 state {"plugin_fields":{"gauge":{"level":{"value":1}}}}"#]
    );
}

#[tokio::test(start_paused = true)]
async fn refused_reports_are_repeated_with_growing_pauses_and_the_current_state() {
    let folder = tempfile::tempdir().unwrap();
    let (world, _stop) = begin(&folder, json!({ "a": 0 }));
    let refusal = |seconds: Option<u64>| CloudError::Status {
        status: StatusCode::SERVICE_UNAVAILABLE,
        retry_after: seconds.map(Duration::from_secs),
        reason: String::new(),
    };
    let answers = [None, None, None, None, Some(100)].map(refusal);
    world.answers.lock().unwrap().extend(answers);
    for a in 1..400 {
        pass(1).await;
        world.set("a", json!(a));
    }
    let at: Vec<String> = world.sent();
    let at: Vec<&str> = at
        .iter()
        .map(|sent| sent.split(' ').next().unwrap())
        .collect();
    assert_eq!(at[..7], ["0", "15", "45", "105", "165", "265", "275"]);
}

#[tokio::test(start_paused = true)]
async fn a_supervisor_that_is_started_again_tells_only_what_changed_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let state = json!({ "a": 1, "apps": { "x": 1 } });
    let (world, stop) = begin(&folder, state.clone());
    // The file is written by another thread, which the paused clock does not wait for.
    while !folder.path().join("cache").exists() {
        pass(1).await;
    }
    drop(stop);
    assert_eq!(world.sent().len(), 1);
    let (world, stop) = begin(&folder, state);
    pass(100).await;
    drop(stop);
    assert_eq!(world.sent(), Vec::<String>::new());
    let (world, _stop) = begin(&folder, json!({ "a": 2, "apps": { "x": 1 } }));
    pass(100).await;
    assert_eq!(world.sent().len(), 1);
}
