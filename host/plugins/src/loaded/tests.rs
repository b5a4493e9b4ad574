use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use plugin_manifest::WrittenLimits;
use plugin_protocol::{GuestRequest, Outcome};

use super::*;
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
    let context = Arc::into_inner(fixture.context).unwrap();
    let manifest =
        "name = \"acme\"\nversion = \"1.0.0\"\ninterface = \"1.0.0\"\nprovides = [\"identify\"]\n";
    let host = Arc::new(PluginHost::new(context));
    Arc::new(LoadedPlugin {
        manifest: Manifest::parse(manifest).unwrap(),
        digest: String::new(),
        signatures: Signatures::default(),
        limits: limits::resolve(&WrittenLimits::default(), &WrittenLimits::default()),
        is_boards_own: false,
        context: Arc::clone(&host.context),
        host,
        code: Arc::new(FakeCode::default()),
        guest,
        at_once: 1,
        calls: Arc::new(Semaphore::new(1)),
        counters: Arc::default(),
    })
}
