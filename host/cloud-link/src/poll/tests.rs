use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt;
use http::StatusCode;
use serde_json::json;

use super::*;

const INTERVAL: Duration = Duration::from_secs(900);
const SETTINGS: Settings = Settings {
    interval: INTERVAL,
    request_timeout: Duration::from_secs(59),
    instant_updates: true,
    connectivity_check: false,
};

/// A cloud with given answers, after which nothing is new; and its device. The clock is paused: waiting costs no time,
/// and the times of events can be compared exactly.
#[derive(Default)]
struct World {
    answers: Mutex<VecDeque<Result<TargetAnswer, CloudError>>>,
    refusals: Mutex<VecDeque<TargetRefusal>>,
    seen: Mutex<Vec<String>>,
    begun: Mutex<Option<Instant>>,
    settings: Mutex<Option<Settings>>,
    /// How often the cloud had no other target.
    unchanged: AtomicUsize,
    /// While it is locked, the cloud does not answer.
    stalls: tokio::sync::Mutex<()>,
}

impl World {
    fn note(&self, what: String) {
        let since = self.begun.lock().unwrap().elapsed().as_secs();
        self.seen.lock().push(format!("{since} {what}"));
    }
}

impl Source for World {
    fn target<'a>(
        &'a self,
        etag: Option<&'a str>,
        _: Duration,
    ) -> BoxFuture<'a, Result<TargetAnswer, CloudError>> {
        async move {
            self.note(format!("asked {}", etag.unwrap_or("-")));
            drop(self.stalls.lock().await);
            let answer = self.answers.lock().pop_front();
            answer.unwrap_or(Ok(TargetAnswer::Unchanged))
        }
        .boxed()
    }
}

impl Device for World {
    fn take(&self, target: Value, force: bool) -> BoxFuture<'_, Result<(), TargetRefusal>> {
        async move {
            self.note(format!("take {target} force={force}"));
            match self.refusals.lock().pop_front() {
                Some(refused) => Err(refused),
                None => Ok(()),
            }
        }
        .boxed()
    }

    fn unchanged(&self) {
        self.unchanged.fetch_add(1, Ordering::Relaxed);
    }

    fn apply_again(&self, force: bool, cancel: bool) {
        self.note(format!("again force={force} cancel={cancel}"));
    }

    fn checking(&self, _: bool) {}

    fn settings(&self) -> Settings {
        self.settings.lock().unwrap_or(SETTINGS)
    }
}

fn new(body: i32, etag: &str) -> Result<TargetAnswer, CloudError> {
    Ok(TargetAnswer::New {
        body: json!(body),
        etag: Some(etag.into()),
    })
}

fn refused(retry_after: Option<u64>) -> Result<TargetAnswer, CloudError> {
    Err(CloudError::Status {
        status: StatusCode::TOO_MANY_REQUESTS,
        retry_after: retry_after.map(Duration::from_secs),
        reason: String::new(),
    })
}

fn start(
    answers: impl IntoIterator<Item = Result<TargetAnswer, CloudError>>,
) -> (Arc<World>, Poll) {
    start_with(SETTINGS, answers)
}

fn start_with(
    settings: Settings,
    answers: impl IntoIterator<Item = Result<TargetAnswer, CloudError>>,
) -> (Arc<World>, Poll) {
    let world = Arc::new(World {
        answers: Mutex::new(answers.into_iter().collect()),
        begun: Mutex::new(Some(Instant::now())),
        settings: Mutex::new(Some(settings)),
        ..World::default()
    });
    let ready = CancellationToken::new();
    ready.cancel();
    let poll = Poll::start(
        world.clone(),
        world.clone(),
        ready,
        CancellationToken::new(),
    );
    (world, poll)
}

/// Returns the events within this many seconds from now on.
async fn within(world: &World, seconds: u64) -> Vec<String> {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    std::mem::take(&mut world.seen.lock())
}

#[tokio::test(start_paused = true)]
async fn the_first_poll_is_immediate_and_later_ones_send_the_etag() {
    let (world, _poll) = start([new(1, "a"), Ok(TargetAnswer::Unchanged), new(2, "b")]);
    assert_eq!(
        within(&world, 899).await,
        ["0 asked -", "0 take 1 force=false"]
    );
    // An interval and up to a minute later.
    let second = within(&world, 62).await;
    assert_eq!(
        second.len(),
        1,
        "unchanged is not applied again: {second:?}"
    );
    assert!(second[0].ends_with("asked a"), "{second:?}");
    assert_eq!(
        world.unchanged.load(Ordering::Relaxed),
        1,
        "it is an update all the same"
    );
    let third = within(&world, 965).await;
    assert!(third[1].ends_with("take 2 force=false"), "{third:?}");
}

#[tokio::test(start_paused = true)]
async fn without_instant_updates_the_first_poll_waits_for_one_period() {
    let settings = Settings {
        instant_updates: false,
        ..SETTINGS
    };
    let (world, poll) = start_with(settings, [new(1, "a")]);
    assert!(!poll.trigger(false, true), "only force triggers then");
    assert_eq!(within(&world, 899).await, Vec::<String>::new());
    assert_eq!(within(&world, 62).await.len(), 2);
    assert!(poll.trigger(true, false));
    let forced = within(&world, 1).await;
    assert!(
        forced[1].ends_with("again force=true cancel=false"),
        "{forced:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn failures_are_waited_out_for_twice_as_long_each_time_and_retry_after_is_kept_to() {
    let fails = || refused(None);
    let (world, _poll) = start([
        fails(),
        fails(),
        fails(),
        refused(Some(100)),
        fails(),
        new(1, "a"),
    ]);
    let seen = within(&world, 1000).await;
    assert_eq!(
        seen,
        [
            "0 asked -",
            "15 asked -",
            "45 asked -",
            "105 asked -",
            // Its own wait of 120 s is longer than the requested one.
            "225 asked -",
            "465 asked -",
            "465 take 1 force=false",
        ]
    );
    // The count starts again after a success.
    world.answers.lock().extend([refused(Some(7200)), fails()]);
    let seen = within(&world, 9000).await;
    let at = |line: &String| line.split(' ').next().unwrap().parse::<u64>().unwrap();
    assert_eq!(at(&seen[1]) - at(&seen[0]), 7200);
    assert_eq!(at(&seen[2]) - at(&seen[1]), 30);
}

#[tokio::test(start_paused = true)]
async fn a_trigger_applies_what_is_known_again_and_what_is_new_with_its_force() {
    let (world, poll) = start([
        new(1, "a"),
        Ok(TargetAnswer::Unchanged),
        new(2, "b"),
        refused(None),
    ]);
    within(&world, 1).await;
    assert!(poll.trigger(true, false));
    assert_eq!(
        within(&world, 1).await,
        ["1 asked a", "1 again force=true cancel=false"]
    );
    assert!(poll.trigger(true, true));
    assert_eq!(
        within(&world, 1).await,
        [
            "2 asked a",
            "2 take 2 force=true",
            "2 again force=true cancel=true"
        ]
    );
    // A failure is ignored, and moves no timer.
    assert!(poll.trigger(false, false));
    assert_eq!(within(&world, 890).await, ["3 asked b"]);
    assert_eq!(within(&world, 70).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn there_is_one_fetch_at_a_time_and_triggers_meanwhile_are_one() {
    let (world, poll) = start([new(1, "a")]);
    let stalled = world.stalls.lock().await;
    assert_eq!(within(&world, 1).await, ["0 asked -"]);
    assert!(poll.trigger(true, false));
    assert!(poll.trigger(false, true));
    assert_eq!(within(&world, 1).await, Vec::<String>::new());
    drop(stalled);
    assert_eq!(
        within(&world, 1).await,
        [
            "2 take 1 force=false",
            "2 asked a",
            "2 again force=true cancel=true"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn an_invalid_target_is_not_fetched_again_and_one_that_was_not_stored_is() {
    let (world, _poll) = start([new(1, "a"), new(2, "b")]);
    world
        .refusals
        .lock()
        .push_back(TargetRefusal::Failed("disk full".into()));
    assert_eq!(
        within(&world, 16).await,
        [
            "0 asked -",
            "0 take 1 force=false",
            "15 asked -",
            "15 take 2 force=false"
        ]
    );
    let (world, poll) = start([new(1, "a")]);
    world
        .refusals
        .lock()
        .push_back(TargetRefusal::Invalid("no apps".into()));
    within(&world, 1).await;
    assert!(poll.trigger(false, false));
    assert_eq!(within(&world, 1).await[0], "1 asked a");
}

#[tokio::test(start_paused = true)]
async fn a_target_that_is_not_signed_is_fetched_whole_again_with_the_next_poll() {
    let (world, poll) = start([new(1, "a"), new(1, "a")]);
    world
        .refusals
        .lock()
        .push_back(TargetRefusal::NotNow("not signed".into()));
    within(&world, 1).await;
    assert!(poll.trigger(false, false));
    assert_eq!(
        within(&world, 1).await,
        ["1 asked -", "1 take 1 force=false"],
        "the policy may be another by now, while the cloud's answer is the same"
    );
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_is_silent_for_two_intervals_is_a_problem_until_it_answers() {
    let fails = (0..12).map(|_| refused(None));
    let (world, poll) = start(fails);
    within(&world, 1799).await;
    assert_eq!(poll.problem(), None);
    within(&world, 2).await;
    assert!(poll.problem().is_some_and(|text| text.contains("1801 s")));
    within(&world, 20_000).await;
    assert_eq!(poll.problem(), None, "unchanged is an answer");
}
