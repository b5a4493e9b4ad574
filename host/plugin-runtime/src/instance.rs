//! An instance: created, used for one call, thrown away.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use plugin_protocol::{Failure, ServedCall};
use wasmtime::{Store, UpdateDeadline};

use crate::exports::Exports;
use crate::failure;
use crate::guest::Guest;
use crate::meter::Meter;
use crate::plugin::Plugin;
use crate::pool::{Pool, Slot};

/// How many streams, tasks and resources an instance can have at a time.
const HANDLES: usize = 1024;

/// An instance that has not been called yet.
pub(crate) struct Instance {
    pub(crate) store: Store<Guest>,
    pub(crate) exports: Exports,
    pub(crate) meter: Arc<Meter>,
    /// Whether it was prepared ahead of its call.
    pub(crate) is_spare: bool,
    /// Dropped after the store, by the order of the fields.
    _slot: Slot,
}

impl Instance {
    /// Creates an instance of `plugin` in `slot`, within the plugin's limits.
    pub(crate) async fn new(plugin: &Plugin, slot: Slot) -> Result<Instance, Failure> {
        Instance::new_within(plugin.limits().wall, plugin, slot).await
    }

    /// Like [`Self::new`], but takes no longer than `wall`.
    pub(crate) async fn new_within(
        wall: Duration,
        plugin: &Plugin,
        slot: Slot,
    ) -> Result<Instance, Failure> {
        let not_ready = |error: wasmtime::Error| Failure::NotReady(format!("{error:#}"));
        let pool = plugin.pool();
        let guest = plugin.guest().map_err(not_ready)?;
        let linked = plugin.linked()?;
        let meter = Arc::new(Meter::new(plugin.limits().cpu));
        let mut store = Store::new(&pool.engine, guest);
        store.limiter(|guest| &mut guest.memory);
        // The data that a guest passes in one call is copied from its memory. The same bytes there can be the content
        // of a thousand strings, and the guest's limits cannot interrupt the copying, since none of its code runs
        // during it.
        store.set_hostcall_fuel(failure::most_data(plugin.limits().body));
        store.set_max_component_handles(HANDLES);
        store.set_epoch_deadline(1);
        let callback_meter = Arc::clone(&meter);
        store.epoch_deadline_callback(move |_| {
            // Other tasks get their turn between two ticks.
            Ok(if callback_meter.look() {
                UpdateDeadline::Interrupt
            } else {
                UpdateDeadline::Yield(1)
            })
        });
        // Starting runs the guest's own code.
        let started = {
            let start = pin!(linked.pre.instantiate_async(&mut store));
            let metered = MeteredGuest {
                future: start,
                pool,
                meter: &meter,
            };
            tokio::time::timeout(wall, metered).await
        };
        let instance = match started {
            Ok(Ok(instance)) => instance,
            Ok(Err(error)) => {
                store.data().memory.note_failed_start();
                return Err(failure::classify(&error, store.data(), meter.exceeded()));
            }
            Err(_) => return Err(Failure::Wall { limit: wall }),
        };
        store.data().memory.note_start();
        let exports = linked.exports.load(&mut store, &instance);
        let exports = exports.map_err(not_ready)?;
        Ok(Instance {
            store,
            exports,
            meter,
            is_spare: false,
            _slot: slot,
        })
    }

    /// Makes the instance serve this call from now on.
    pub(crate) fn serve(&mut self, serving: ServedCall) {
        let guest = self.store.data_mut();
        if let Some(usage) = &serving.usage {
            usage.begin(&guest.blueprint.limits);
            self.meter.show_in(usage);
            guest.memory.show_in(usage);
        }
        guest.serve(serving);
    }

    /// Must be called before an instance that was prepared ahead is used: time has passed since it was created.
    pub(crate) fn wake(&mut self) {
        self.is_spare = true;
        self.store.set_epoch_deadline(1);
    }
}

/// A future that runs guest code: while it is polled, the ticker ticks and the meter counts.
pub(crate) struct MeteredGuest<'a, F> {
    pub(crate) future: F,
    pub(crate) pool: &'a Pool,
    pub(crate) meter: &'a Meter,
}

impl<F: Future + Unpin> Future for MeteredGuest<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let (pool, meter) = (self.pool, self.meter);
        poll_metered(Pin::new(&mut self.future), pool, meter, context)
    }
}

/// Polls once, like [`MeteredGuest`].
pub(crate) fn poll_metered<F: Future + ?Sized>(
    future: Pin<&mut F>,
    pool: &Pool,
    meter: &Meter,
    context: &mut Context<'_>,
) -> Poll<F::Output> {
    let _running = pool.ticker.run();
    meter.begin();
    let polled = future.poll(context);
    meter.look();
    polled
}

/// Ends as soon as the meter is exceeded: ticks do not catch a guest that runs only a little at a time.
pub(crate) async fn within_cpu<F: Future + Unpin>(
    mut metered: MeteredGuest<'_, F>,
) -> Option<F::Output> {
    poll_fn(|context| match Pin::new(&mut metered).poll(context) {
        Poll::Pending if metered.meter.exceeded() => Poll::Ready(None),
        polled => polled.map(Some),
    })
    .await
}
