//! The GPIO lines that the policy names.

use std::sync::Arc;
use std::time::Duration;

use os::{GpioChips, GpioLine, LineMode, LineRequest};
use plugin_protocol::text::{cut, one_line};
use plugin_protocol::wit::gpio::{Edge, EdgeEvent, GpioError, Host};
use tokio::time::timeout;

use super::InstanceCall;
use crate::blocking::BlockingShare;
use crate::gpio_grants::{Direction, GpioGrant};
use crate::hardware::gpio_lines::{EdgeWatch, GrantedLine};
use crate::holdings::HeldResource;

/// The longest that a plugin may wait for an edge.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// How long everything else may take: a chip may be behind a stuck bus.
const ANSWERED_WITHIN: Duration = Duration::from_secs(5);
/// How much is shown of a name that is not in the policy, in bytes.
const SHOWN_NAME: usize = 64;

/// A line that a call uses.
struct UsedLine {
    grant: GpioGrant,
    line: Arc<GrantedLine>,
    chips: Arc<dyn GpioChips>,
    consumer: String,
    jobs: BlockingShare,
}

impl UsedLine {
    /// Runs `work` with the line's request, if there is one; `work` may add one. One at a time.
    async fn with<R: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&UsedLine, &mut Option<Arc<dyn GpioLine>>) -> Result<R, os::GpioError>
        + Send
        + 'static,
    ) -> Result<R, GpioError> {
        let (used, jobs) = (Arc::clone(self), self.jobs.clone());
        let working = async move {
            let mut held = Arc::clone(&used.line.held).lock_owned().await;
            // Released while this waited for its turn.
            if used.line.revoked.is_cancelled() {
                return Err(used.revoked());
            }
            // Others get their turn once the kernel has returned, even if this call ends before.
            let work = move || work(&used, &mut held).map_err(protocol_error);
            let stopping = || GpioError::Other("the supervisor is stopping".to_owned());
            jobs.run_on_hardware(work).await.ok_or_else(stopping)?
        };
        match timeout(ANSWERED_WITHIN, working).await {
            Ok(done) => done,
            Err(_) => Err(self.silent()),
        }
    }

    fn silent(&self) -> GpioError {
        GpioError::Busy(format!(
            "the line `{}` did not answer within {} s",
            self.grant.name,
            ANSWERED_WITHIN.as_secs()
        ))
    }

    fn request(&self, mode: LineMode) -> Result<Arc<dyn GpioLine>, os::GpioError> {
        let request = LineRequest {
            address: self.grant.address(),
            mode,
            active_low: self.grant.active_low,
            consumer: self.consumer.clone(),
        };
        Ok(Arc::from(self.chips.request(&request)?))
    }

    fn as_input(
        &self,
        held: &mut Option<Arc<dyn GpioLine>>,
    ) -> Result<Arc<dyn GpioLine>, os::GpioError> {
        if let Some(line) = held {
            return Ok(Arc::clone(line));
        }
        let line = self.request(self.grant.as_input())?;
        *held = Some(Arc::clone(&line));
        Ok(line)
    }

    fn revoked(&self) -> GpioError {
        GpioError::NotGranted(format!(
            "the policy no longer grants the line `{}` to the plugin",
            self.grant.name
        ))
    }
}

impl InstanceCall<'_> {
    /// Returns the line with the plugin's name for it.
    fn line(&self, name: &str) -> Result<Arc<UsedLine>, GpioError> {
        let plugin = self.plugin;
        let not_granted = || {
            GpioError::NotGranted(format!(
                "the policy does not name the line `{}` in `gpio` of the plugin `{}`",
                one_line(name, SHOWN_NAME),
                plugin.name
            ))
        };
        let grant = plugin.grants.gpio.line(name).ok_or_else(not_granted)?;
        let line = plugin.hardware.gpio_lines.get(&plugin.name, grant);
        Ok(Arc::new(UsedLine {
            line: line.ok_or_else(not_granted)?,
            grant: grant.clone(),
            chips: Arc::clone(&plugin.services.gpio),
            consumer: format!("plugin {}", plugin.name),
            jobs: plugin.share.jobs.clone(),
        }))
    }

    /// Starts recording the edges of a line for as long as the instance lives.
    async fn watch_edges(&self, line: &Arc<UsedLine>) -> Result<Arc<EdgeWatch>, GpioError> {
        let permit = timeout(ANSWERED_WITHIN, line.line.become_watcher()).await;
        let Ok(Some(permit)) = permit else {
            return Err(GpioError::Busy(format!(
                "another call waits for the edges of the line `{}`",
                line.grant.name
            )));
        };
        let watch = line.with(move |line, held| {
            let request = line.as_input(held)?;
            let name = line.grant.name.clone();
            EdgeWatch::start(name, Arc::clone(&line.line), &*request, permit)
        });
        let watch = Arc::new(watch.await?);
        self.holdings
            .add(HeldResource::Edges(Arc::clone(&watch)))
            .map_err(|_| GpioError::Other("too many resources at a time".to_owned()))?;
        Ok(watch)
    }
}

impl Host for InstanceCall<'_> {
    async fn read(&self, name: String) -> Result<bool, GpioError> {
        let line = self.line(&name)?;
        line.with(|line, held| match (&held, line.grant.direction) {
            (Some(held), _) => held.value(),
            (None, Direction::In) => line.as_input(held)?.value(),
            // Reading must not switch anything.
            (None, Direction::Out) => line.request(LineMode::AsIs)?.value(),
        })
        .await
    }

    async fn write(&self, name: String, on: bool) -> Result<(), GpioError> {
        let line = self.line(&name)?;
        if line.grant.direction == Direction::In {
            return Err(GpioError::Invalid(format!(
                "the line `{name}` cannot be written: its `direction` in `gpio` is `in`"
            )));
        }
        line.with(move |line, held| {
            match held {
                Some(held) => held.set(on)?,
                None => *held = Some(line.request(line.grant.as_output(on))?),
            }
            Ok(())
        })
        .await
    }

    async fn wait_edge(
        &self,
        name: String,
        edge: Edge,
        milliseconds: u32,
    ) -> Result<Option<EdgeEvent>, GpioError> {
        let line = self.line(&name)?;
        if line.grant.direction == Direction::Out {
            return Err(GpioError::Invalid(format!(
                "the line `{name}` is an output: nobody can wait for its edges"
            )));
        }
        let watch = match self.holdings.edge_watch(&name) {
            Some(watch) => watch,
            None => self.watch_edges(&line).await?,
        };
        let Ok(_turn) = watch.turn.try_lock() else {
            return Err(GpioError::Busy(format!(
                "this call already waits for an edge of the line `{name}`"
            )));
        };
        let held = timeout(ANSWERED_WITHIN, watch.line.held.lock()).await;
        let held = held.map_err(|_| line.silent())?.clone();
        // Released since the first wait.
        let Some(request) = held else {
            return Err(line.revoked());
        };
        let within = Duration::from_millis(milliseconds.into()).min(LONGEST_WAIT);
        tokio::select! {
            biased;
            () = watch.line.revoked.cancelled() => Err(line.revoked()),
            edge = timeout(within, next_edge(&*request, edge)) => match edge {
                Ok(edge) => edge.map(Some).map_err(protocol_error),
                Err(_) => Ok(None),
            },
        }
    }
}

/// Returns the next edge of this kind. Lost edges of the other kind count as well.
async fn next_edge(line: &dyn GpioLine, kind: Edge) -> Result<EdgeEvent, os::GpioError> {
    let mut lost = 0_u32;
    loop {
        let edge = line.next_edge().await?;
        lost = lost.saturating_add(edge.lost);
        let counts = match kind {
            Edge::Both => true,
            Edge::Rising => edge.is_rising,
            Edge::Falling => !edge.is_rising,
        };
        if counts {
            return Ok(EdgeEvent {
                is_rising: edge.is_rising,
                nanoseconds: edge.nanoseconds,
                lost,
            });
        }
        // Even with a line that never rests, others get their turn.
        tokio::task::consume_budget().await;
    }
}

fn protocol_error(error: os::GpioError) -> GpioError {
    match error {
        os::GpioError::NotFound(why) => GpioError::NotFound(cut(why)),
        os::GpioError::Busy(why) => GpioError::Busy(cut(why)),
        os::GpioError::Unsupported(why) => GpioError::Invalid(cut(why)),
        os::GpioError::Failed(why) => GpioError::Other(cut(why)),
    }
}
