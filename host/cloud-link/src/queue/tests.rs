use std::collections::VecDeque;

use http::StatusCode;

use super::*;
use crate::poll::{Settings, TargetRefusal};

/// A cloud that records requests, and returns the given answers, then successes. Clock and store are real: a paused
/// clock would run on while the store works.
struct Cloud {
    uuid: DeviceUuid,
    answers: Mutex<VecDeque<CloudError>>,
    seen: tokio::sync::mpsc::UnboundedSender<Value>,
}

impl Sink for Cloud {
    fn uuid(&self) -> &DeviceUuid {
        &self.uuid
    }

    fn patch<'a>(
        &'a self,
        what: &'a str,
        body: &'a Value,
        _: Duration,
    ) -> BoxFuture<'a, Result<(), CloudError>> {
        assert_eq!(what, "tags");
        async move {
            self.seen.send(body[self.uuid.as_str()].clone()).unwrap();
            self.answers.lock().pop_front().map_or(Ok(()), Err)
        }
        .boxed()
    }
}

struct QuickDevice;

impl Device for QuickDevice {
    fn take(&self, _: Value, _: bool) -> BoxFuture<'_, Result<(), TargetRefusal>> {
        async { Ok(()) }.boxed()
    }

    fn unchanged(&self) {}

    fn apply_again(&self, _: bool, _: bool) {}

    fn checking(&self, _: bool) {}

    fn settings(&self) -> Settings {
        Settings {
            interval: Duration::from_millis(20),
            request_timeout: Duration::from_secs(10),
            instant_updates: true,
            connectivity_check: false,
        }
    }
}

struct Rig {
    queue: Queue,
    seen: tokio::sync::mpsc::UnboundedReceiver<Value>,
    store: Store,
    stop: CancellationToken,
}

fn start(store: Store, answers: Vec<CloudError>) -> Rig {
    let (tell, seen) = tokio::sync::mpsc::unbounded_channel();
    let cloud = Cloud {
        uuid: store.device_uuid().clone(),
        answers: Mutex::new(answers.into()),
        seen: tell,
    };
    let stop = CancellationToken::new();
    let queue = Queue::start(
        store.clone(),
        Arc::new(cloud),
        Arc::new(QuickDevice),
        stop.clone(),
    );
    Rig {
        queue: queue.unwrap(),
        seen,
        store,
        stop,
    }
}

fn store() -> (Store, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (Store::open(folder.path()).unwrap().store, folder)
}

fn status(code: u16) -> CloudError {
    CloudError::Status {
        status: StatusCode::from_u16(code).unwrap(),
        retry_after: None,
        reason: String::new(),
    }
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let pairs = pairs.iter();
    pairs
        .map(|(name, value)| ((*name).into(), (*value).into()))
        .collect()
}

#[tokio::test]
async fn queued_values_are_sent_until_the_cloud_accepts_them_and_then_deleted() {
    let (store, _folder) = store();
    let mut rig = start(store, vec![status(503), status(401)]);
    rig.queue
        .add("device_tag", pairs(&[("a", "1"), ("b", "")]))
        .await
        .unwrap();
    for _ in 0..3 {
        assert_eq!(rig.seen.recv().await.unwrap(), json!({"a": "1", "b": ""}));
    }
    while !rig.store.intents().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn queued_values_survive_a_restart() {
    let (store, _folder) = store();
    let mut rig = start(store, (0..9999).map(|_| status(500)).collect());
    rig.queue
        .add("device_tag", pairs(&[("a", "1")]))
        .await
        .unwrap();
    rig.queue
        .add(
            "device_tag",
            pairs(&[("a", "2"), ("b c-ü".replace(' ', "_").as_str(), "3")]),
        )
        .await
        .unwrap();
    rig.seen.recv().await.unwrap();
    rig.stop.cancel();
    let mut next = start(rig.store.clone(), Vec::new());
    assert_eq!(
        next.seen.recv().await.unwrap(),
        json!({"a": "2", "b_c-ü": "3"})
    );
}

/// Otherwise it would be sent only after the next start, and not count towards what may wait.
#[tokio::test]
async fn stored_values_are_sent_even_if_their_caller_has_left() {
    let (store, _folder) = store();
    let mut rig = start(store, Vec::new());
    let adding = rig
        .queue
        .add("device_tag", pairs(&[("a", "1"), ("b", "2")]));
    assert!(adding.now_or_never().is_none(), "the store takes longer");
    assert_eq!(rig.seen.recv().await.unwrap(), json!({"a": "1", "b": "2"}));
    while !rig.store.intents().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
}

/// An earlier version could store more.
#[tokio::test]
async fn more_than_may_wait_is_sent_and_refuses_further_values() {
    let (store, _folder) = store();
    for number in 0..=MAX_WAITING {
        let key = format!("device_tag {number}");
        store.put_intent(INTENT, &key, &json!("x")).unwrap();
    }
    let mut rig = start(store, (0..9999).map(|_| status(500)).collect());
    let full = rig.queue.add("device_tag", pairs(&[("a", "1")])).await;
    assert!(matches!(full, Err(QueueError::Full)), "{full:?}");
    let sent = rig.seen.recv().await.unwrap();
    assert_eq!(sent.as_object().unwrap().len(), MAX_WAITING + 1);
}

#[tokio::test]
async fn requests_that_the_cloud_always_refuses_are_dropped() {
    let (store, _folder) = store();
    let mut rig = start(store, vec![status(400)]);
    rig.queue
        .add("device_tag", pairs(&[("a", "1")]))
        .await
        .unwrap();
    rig.seen.recv().await.unwrap();
    while !rig.store.intents().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn values_that_cannot_be_sent_are_not_queued() {
    let (store, _folder) = store();
    let rig = start(store, Vec::new());
    let long = "x".repeat(101);
    for (kind, name, value) in [
        ("device", "a", "b"),
        ("state", "a", "b"),
        ("device_tag", "", "b"),
        ("device_tag", "a b", "b"),
        ("device_tag", "a\n", "b"),
        ("device_tag", long.as_str(), "b"),
        ("device_tag", "a", "x".repeat(10_001).as_str()),
    ] {
        let sound = ("fine".to_owned(), String::new());
        let values = [sound, (name.to_owned(), value.to_owned())];
        assert!(rig.queue.add(kind, values).await.is_err(), "{kind} {name}");
    }
    let many = (0..1001).map(|number| (number.to_string(), String::new()));
    let full = rig.queue.add("device_tag", many).await;
    assert!(matches!(full, Err(QueueError::Full)), "{full:?}");
    assert_eq!(rig.store.intents().unwrap(), []);
}
