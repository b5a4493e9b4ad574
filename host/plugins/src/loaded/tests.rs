use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use plugin_manifest::WrittenLimits;
use plugin_protocol::{Blueprint, ComponentFacts, GuestRequest, HostCalls, Outcome};

use super::*;
use crate::bounds::{FAILURES_A_SECOND, FAILURES_AT_ONCE, HOST_LINES_AT_ONCE};
use crate::limits;
use crate::provision::tests::Fixture;

/// Where a plugin runs whose actions do nothing, and end when the test lets them.
pub(crate) struct FakeGuest {
    /// Each action takes one of these at its end.
    pub(crate) ends: Semaphore,
    /// How many actions have ended.
    pub(crate) ended: AtomicUsize,
}

impl Default for FakeGuest {
    fn default() -> Self {
        FakeGuest {
            ends: Semaphore::new(0),
            ended: AtomicUsize::new(0),
        }
    }
}

impl GuestPlugin for FakeGuest {
    fn call(&self, _: ServedCall, _: GuestRequest) -> BoxFuture<'_, Result<Outcome, Failure>> {
        pending().boxed()
    }

    fn act(&self, _: ServedCall, _: ActionCall) -> BoxFuture<'_, Result<ActionAnswer, Failure>> {
        async {
            self.ends.acquire().await.unwrap().forget();
            self.ended.fetch_add(1, SeqCst);
            Ok(ActionAnswer::Own(Ok(Vec::new())))
        }
        .boxed()
    }
}

#[derive(Default)]
struct FakeCode(ComponentFacts);

impl GuestCode for FakeCode {
    fn facts(&self) -> &ComponentFacts {
        &self.0
    }

    fn plugin(&self, _: Blueprint, _: Arc<dyn HostCalls>) -> Arc<dyn GuestPlugin> {
        Arc::<FakeGuest>::default()
    }
}

/// Returns the plugin of `fixture`, with one place for calls, as if it ran there.
pub(crate) fn loaded_plugin(fixture: Fixture, guest: Arc<FakeGuest>) -> Arc<LoadedPlugin> {
    let manifest =
        "name = \"acme\"\nversion = \"1.0.0\"\ninterface = \"1.0.0\"\nprovides = [\"identify\"]\n";
    Arc::new(LoadedPlugin {
        manifest: Manifest::parse(manifest).unwrap(),
        digest: String::new(),
        signatures: Signatures::default(),
        limits: limits::resolve(&WrittenLimits::default(), &WrittenLimits::default()),
        is_boards_own: false,
        context: fixture.context,
        instances: Arc::default(),
        code: Arc::new(FakeCode::default()),
        guest,
        at_once: 1,
        calls: Arc::new(Semaphore::new(1)),
        counters: Arc::default(),
    })
}

#[tokio::test(start_paused = true)]
async fn failures_beyond_a_plugins_share_are_counted_but_neither_logged_nor_shown() {
    let fixture = Fixture::new("");
    let device = Arc::clone(&fixture.device);
    let plugin = loaded_plugin(fixture, Arc::default());
    let log = &plugin.context.share.log;
    let shown = || device.faults.load(SeqCst);
    let at_once = (FAILURES_AT_ONCE / 2) as usize;
    let a_second = (FAILURES_A_SECOND / 2) as usize;
    // Lines of its own do not hide its failures, and faults of its callers do not either.
    while log.lines.take("acme") {}
    for _ in 0..10 * at_once {
        plugin.failed(&Failure::BodyIncomplete("it did not arrive".to_owned()));
    }
    let trap = Failure::Trap {
        what: "wasm trap".to_owned(),
        trace: "at boom".to_owned(),
        account: Some("panicked: boom".to_owned()),
    };
    for _ in 0..10 * at_once {
        plugin.failed(&trap);
    }
    let lines = log.recent.after("acme", 0).newest;
    assert_eq!((shown(), lines), (at_once, at_once as u64));

    tokio::time::advance(Duration::from_secs(1)).await;
    for _ in 0..at_once {
        plugin.failed_itself("the event `start` failed");
    }
    assert_eq!(shown(), at_once + a_second);
    let failures = 11 * at_once as u64;
    let last = Some("the event `start` failed".to_owned());
    assert_eq!(plugin.counters.read(), (0, failures, last));

    // A lack of places is no failure of the plugin, but it is logged.
    tokio::time::advance(Duration::from_secs(1)).await;
    for _ in 0..at_once {
        plugin.failed(&Failure::Busy(Bound::Calls(1)));
    }
    assert!(!log.failures.take("acme"));
    assert_eq!(shown(), at_once + a_second);
    assert_eq!(plugin.counters.read().1, failures);
    // Callers that make it fail do not silence it.
    assert!(log.lines.take("acme"));
}

/// Whoever can call the plugin makes the host try again.
#[tokio::test(start_paused = true)]
async fn each_line_about_a_folder_that_cannot_be_created_is_one_of_the_plugins_share() {
    let policy = "grants = [\"files\"]\n\
         files = [{ host = \"/proc/nowhere/acme\", guest = \"/data\", create = true }]\n";
    let plugin = loaded_plugin(Fixture::new(policy), Arc::default());
    for _ in 0..3 {
        plugin.make_folders().await;
    }
    let lines = &plugin.context.share.log.host_lines;
    let left = (0..).take_while(|_| lines.take("acme")).count();
    assert_eq!(left, (HOST_LINES_AT_ONCE / 2) as usize - 3);
}
