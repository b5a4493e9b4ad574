use std::collections::VecDeque;
use std::io::Read as _;

use flate2::read::MultiGzDecoder;
use futures::stream;
use http::StatusCode;
use parking_lot::Mutex;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_stream::wrappers::UnboundedReceiverStream;

use super::live::LiveUpload;
use super::*;

const PATIENCE: Duration = Duration::from_secs(3600);

/// How the cloud of these tests responds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CloudBehaviour {
    Works,
    Away,
    Refuses(u16),
}

/// A device that prints the test's lines, and its cloud. The clock is paused.
struct World {
    prints: UnboundedSender<LogLine>,
    lines: Mutex<Option<BoxStream<'static, LogLine>>>,
    shipping: watch::Sender<LogShipping>,
    seen: tokio::sync::Mutex<watch::Receiver<LogShipping>>,
    behaviour: watch::Sender<CloudBehaviour>,
    /// The received bodies, packed, one for each request.
    got: Mutex<VecDeque<(Duration, Vec<u8>)>>,
    begun: Instant,
    came: Notify,
}

impl World {
    fn print(&self, numbers: std::ops::Range<u64>) {
        for number in numbers {
            let line = LogLine {
                message: number.to_string(),
                timestamp_ms: 1,
                service: Some(7),
                is_stderr: false,
            };
            self.prints.send(line).unwrap();
        }
    }

    /// Returns the messages that have arrived so far, a list for each request.
    fn messages(&self) -> Vec<Vec<String>> {
        let got = self.got.lock();
        let requests = got.iter().map(|(_, packed)| {
            let mut text = String::new();
            // The body of a current request has no end yet.
            let _ = MultiGzDecoder::new(&packed[..]).read_to_string(&mut text);
            let lines = text.lines().map(|line| {
                let line: serde_json::Value = serde_json::from_str(line).unwrap();
                line["message"].as_str().unwrap().to_owned()
            });
            lines.collect()
        });
        requests.collect()
    }

    async fn until(&self, is: impl Fn(&[Vec<String>]) -> bool) -> Vec<Vec<String>> {
        let waiting = async {
            loop {
                let messages = self.messages();
                if is(&messages) {
                    return messages;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        match tokio::time::timeout(PATIENCE, waiting).await {
            Ok(messages) => messages,
            Err(_) => panic!("only these came: {:?}", self.messages()),
        }
    }
}

struct Cloud(Arc<World>);

impl Cloud {
    fn begin(&self) -> usize {
        let mut got = self.0.got.lock();
        got.push_back((self.0.begun.elapsed(), Vec::new()));
        got.len() - 1
    }
}

fn refused(behaviour: CloudBehaviour) -> Result<(), CloudError> {
    match behaviour {
        CloudBehaviour::Works => Ok(()),
        CloudBehaviour::Away => Err(CloudError::Unreachable("gone".into())),
        CloudBehaviour::Refuses(status) => Err(CloudError::Status {
            status: StatusCode::from_u16(status).unwrap(),
            retry_after: None,
            reason: String::new(),
        }),
    }
}

impl LogSink for Cloud {
    fn stream(
        &self,
        mut body: BoxStream<'static, Bytes>,
    ) -> BoxFuture<'static, Result<(), CloudError>> {
        let mut behaviour = self.0.behaviour.subscribe();
        let now = *behaviour.borrow_and_update();
        if now != CloudBehaviour::Works {
            return async move { refused(now) }.boxed();
        }
        let place = self.begin();
        let world = Arc::clone(&self.0);
        let request = tokio::spawn(async move {
            loop {
                tokio::select! {
                    chunk = body.next() => match chunk {
                        Some(chunk) => world.got.lock()[place].1.extend_from_slice(&chunk),
                        None => return Ok(()),
                    },
                    changed = behaviour.changed() => {
                        changed.unwrap();
                        return refused(*behaviour.borrow_and_update());
                    }
                }
            }
        });
        async move { request.await.unwrap() }.boxed()
    }

    fn send(&self, packed: Vec<u8>) -> BoxFuture<'static, Result<(), CloudError>> {
        let answer = refused(*self.0.behaviour.borrow());
        if answer.is_ok() {
            let place = self.begin();
            self.0.got.lock()[place].1 = packed;
        } else {
            self.0.came.notify_one();
        }
        async move { answer }.boxed()
    }
}

struct Device(Arc<World>);

impl LogSource for Device {
    fn lines(&self) -> BoxStream<'static, LogLine> {
        let lines = self.0.lines.lock().take();
        lines.unwrap_or_else(|| stream::pending().boxed())
    }

    fn shipping(&self) -> LogShipping {
        *self.0.shipping.borrow()
    }

    fn forget(&self) {}

    fn changed(&self) -> BoxFuture<'_, ()> {
        async {
            let _ = self.0.seen.lock().await.changed().await;
        }
        .boxed()
    }
}

fn begin(folder: &tempfile::TempDir, behaviour: CloudBehaviour) -> (Arc<World>, CancellationToken) {
    let (prints, lines) = unbounded_channel();
    let (shipping, seen) = watch::channel(LogShipping::Yes);
    let world = Arc::new(World {
        prints,
        lines: Mutex::new(Some(UnboundedReceiverStream::new(lines).boxed())),
        shipping,
        seen: tokio::sync::Mutex::new(seen),
        behaviour: watch::channel(behaviour).0,
        got: Mutex::default(),
        begun: Instant::now(),
        came: Notify::new(),
    });
    let (ready, stop) = (CancellationToken::new(), CancellationToken::new());
    ready.cancel();
    let (cloud, device) = (Cloud(world.clone()), Device(world.clone()));
    let folder = folder.path().join("logs");
    upload_logs(
        Arc::new(cloud),
        Arc::new(device),
        folder,
        ready,
        stop.clone(),
    );
    (world, stop)
}

fn numbers(numbers: std::ops::Range<u64>) -> Vec<String> {
    numbers.map(|number| number.to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn lines_go_in_one_request_that_ends_when_there_is_nothing_to_say() {
    let folder = tempfile::tempdir().unwrap();
    let (world, stop) = begin(&folder, CloudBehaviour::Works);
    for number in 0..20 {
        world.print(number..number + 1);
        tokio::time::sleep(Duration::from_secs(30)).await;
    }
    let messages = world.until(|messages| messages.concat().len() == 20).await;
    assert_eq!(messages, [numbers(0..20)]);
    tokio::time::sleep(Duration::from_secs(61)).await;
    world.print(20..21);
    let messages = world.until(|messages| messages.concat().len() == 21).await;
    assert_eq!(messages, [numbers(0..20), numbers(20..21)]);
    // The request has ended properly, packing included.
    let whole = world.got.lock()[0].1.clone();
    MultiGzDecoder::new(&whole[..])
        .read_to_end(&mut Vec::new())
        .unwrap();
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn lines_wait_on_the_disk_while_the_cloud_is_away_and_come_in_order_when_it_is_back() {
    let folder = tempfile::tempdir().unwrap();
    let (world, stop) = begin(&folder, CloudBehaviour::Away);
    world.print(0..5);
    world.came.notified().await;
    world.print(5..10);
    world.came.notified().await;
    assert_eq!(world.messages(), Vec::<Vec<String>>::new());
    stop.cancel();
    // The supervisor is started again while the cloud is still away.
    tokio::time::sleep(Duration::from_secs(10)).await;
    let (world, stop) = begin(&folder, CloudBehaviour::Away);
    world.print(10..15);
    world.came.notified().await;
    world.behaviour.send_replace(CloudBehaviour::Works);
    world.until(|messages| messages.concat().len() == 15).await;
    world.print(15..20);
    let messages = world.until(|messages| messages.concat().len() == 20).await;
    assert_eq!(messages.concat(), numbers(0..20));
    assert_eq!(
        messages.last(),
        Some(&numbers(15..20)),
        "in the long request again"
    );
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn lines_that_a_broken_connection_may_have_lost_are_sent_again() {
    let folder = tempfile::tempdir().unwrap();
    let (world, stop) = begin(&folder, CloudBehaviour::Works);
    world.print(0..10);
    world.until(|messages| messages.concat().len() == 10).await;
    tokio::time::sleep(Duration::from_secs(31)).await;
    world.print(10..20);
    world.until(|messages| messages.concat().len() == 20).await;
    world.behaviour.send_replace(CloudBehaviour::Away);
    tokio::time::sleep(Duration::from_millis(200)).await;
    world.print(20..30);
    world.came.notified().await;
    world.behaviour.send_replace(CloudBehaviour::Works);
    let messages = world.until(|messages| messages.concat().len() == 40).await;
    assert_eq!(messages.concat()[20..], numbers(10..30));
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn pauses_between_refused_requests_grow_to_five_minutes() {
    for status in [401, 503] {
        let folder = tempfile::tempdir().unwrap();
        let (world, stop) = begin(&folder, CloudBehaviour::Refuses(status));
        world.print(0..1);
        let mut before = Instant::now();
        let mut waits = Vec::new();
        for _ in 0..9 {
            world.came.notified().await;
            waits.push(before.elapsed().as_secs());
            before = Instant::now();
        }
        assert_eq!(waits, [5, 10, 20, 40, 80, 160, 300, 300, 300]);
        stop.cancel();
    }
}

#[tokio::test(start_paused = true)]
async fn lines_that_the_cloud_always_refuses_are_left_out_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (world, stop) = begin(&folder, CloudBehaviour::Refuses(400));
    world.print(0..3);
    world.came.notified().await;
    world.came.notified().await;
    world.behaviour.send_replace(CloudBehaviour::Works);
    world.print(3..4);
    let messages = world
        .until(|messages| messages.concat().contains(&"3".to_owned()))
        .await;
    let warning = "Warning: Suppressed 3 message(s) while the cloud was away";
    assert_eq!(messages.concat(), [warning, "3"]);
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn nobody_who_does_not_want_logs_gets_any() {
    let folder = tempfile::tempdir().unwrap();
    let (world, stop) = begin(&folder, CloudBehaviour::Away);
    world.print(0..3);
    world.came.notified().await;
    world.shipping.send_replace(LogShipping::No);
    let logs = folder.path().join("logs");
    let empty = async {
        let is_line = |name: &str| name.ends_with(".gz") || name.ends_with(".open");
        while std::fs::read_dir(&logs)
            .unwrap()
            .any(|entry| is_line(&entry.unwrap().file_name().to_string_lossy()))
        {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let emptied = tokio::time::timeout(PATIENCE, empty).await;
    let left: Vec<_> = std::fs::read_dir(&logs).unwrap().collect();
    assert!(emptied.is_ok(), "{left:?}");
    world.behaviour.send_replace(CloudBehaviour::Works);
    tokio::time::sleep(Duration::from_secs(1000)).await;
    assert_eq!(world.messages(), Vec::<Vec<String>>::new());
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_too_slow_costs_lines_and_no_memory_and_says_how_many() {
    let (chunks, mut body) = {
        struct SlowSink(Mutex<Option<BoxStream<'static, Bytes>>>);
        impl LogSink for SlowSink {
            fn stream(
                &self,
                body: BoxStream<'static, Bytes>,
            ) -> BoxFuture<'static, Result<(), CloudError>> {
                *self.0.lock() = Some(body);
                std::future::pending().boxed()
            }

            fn send(&self, _: Vec<u8>) -> BoxFuture<'static, Result<(), CloudError>> {
                std::future::pending().boxed()
            }
        }
        let slow = SlowSink(Mutex::default());
        let live = LiveUpload::open(&slow);
        let body = slow.0.lock().take().unwrap();
        (live, body)
    };
    let mut live = chunks;
    let mut wrote = 0;
    while live.has_room() {
        let mut noise = vec![0; 32 << 10];
        getrandom::fill(&mut noise).unwrap();
        live.write(vec![noise]);
        wrote += 1;
    }
    assert!((8..=10).contains(&wrote), "{wrote}");
    body.next().await.unwrap();
    assert!(live.has_room());
}
