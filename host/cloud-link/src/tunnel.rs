//! The way by which the cloud reaches the device: one connection that the device opens and keeps, on which the
//! cloud asks and the device answers (crate `tunnel`). It is what a change of the target comes by at once;
//! without it the device polls.
//!
//! A connection that ends is made again, soon at first and later and later, each time a bit sooner or later by
//! chance, so that devices that lost their cloud together do not come back together.

use std::error::Error;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use ::tunnel::{End, over, serve};
use http::{Request, Response};
use hyper::body::Incoming;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::client::{Client, CloudError};
use crate::poll::chain;

/// The wait after the first failure, and the longest.
const BASE: Duration = Duration::from_secs(2);
const CAP: Duration = Duration::from_secs(300);
/// A tunnel that was there for so long was no failure.
const LASTED: Duration = Duration::from_secs(60);
/// How long what is under way may take when the tunnel is to close.
const GRACE: Duration = Duration::from_secs(5);

/// Keeps a tunnel while `wanted`, once `ready` is cancelled, until `stop`; done when it is closed after that.
/// `protocol` is its WebSocket subprotocol; `answer` answers what comes through it. Runs in a tokio runtime.
pub fn keep_tunnel<F, A, B>(
    client: Arc<Client>,
    protocol: String,
    wanted: watch::Receiver<bool>,
    answer: F,
    ready: CancellationToken,
    stop: CancellationToken,
) -> JoinHandle<()>
where
    F: Fn(Request<Incoming>) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Response<B>> + Send + 'static,
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    tokio::spawn(async move {
        if stop.run_until_cancelled(ready.cancelled()).await.is_none() {
            return;
        }
        let mut failures = 0_u32;
        loop {
            if !is_wanted(&wanted, &stop).await {
                return;
            }
            let begun = Instant::now();
            let closing = until_unwanted(wanted.clone(), stop.clone());
            let ended = once(&client, &protocol, answer.clone(), closing).await;
            if stop.is_cancelled() {
                return;
            }
            let asked = match ended {
                // Also where nobody wanted it any more.
                Ok(()) => None,
                Err(error) => {
                    let why = chain(&error);
                    tracing::debug!("the cloud cannot reach this device directly: {why}");
                    error.retry_after()
                }
            };
            if begun.elapsed() >= LASTED {
                failures = 0;
            }
            let wait = asked
                .unwrap_or_default()
                .max(pause(failures, getrandom::u32().unwrap_or(0)));
            failures = failures.saturating_add(1);
            if stop.run_until_cancelled(sleep(wait)).await.is_none() {
                return;
            }
        }
    })
}

/// One connection, from its beginning to its end.
async fn once<F, A, B>(
    client: &Client,
    protocol: &str,
    answer: F,
    closing: impl Future<Output = ()>,
) -> Result<(), CloudError>
where
    F: Fn(Request<Incoming>) -> A + Send + Sync + 'static,
    A: Future<Output = Response<B>> + Send + 'static,
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let mut closing = std::pin::pin!(closing);
    let connection = tokio::select! {
        connection = client.tunnel(protocol) => connection?,
        () = closing.as_mut() => return Ok(()),
    };
    tracing::info!("the cloud reaches this device directly");
    let pipe = over(connection, End::Device).await;
    let cut = CancellationToken::new();
    let told = cut.clone();
    let stopping = async move {
        closing.await;
        told.cancel();
    };
    let serving = serve(pipe, answer, stopping);
    let overtime = async {
        cut.cancelled().await;
        sleep(GRACE).await;
    };
    let served = tokio::select! {
        served = serving => served,
        () = overtime => Ok(()),
    };
    tracing::info!("the cloud no longer reaches this device directly");
    served.map_err(|error| CloudError::Unreachable(error.into()))
}

/// Waits until a tunnel is wanted; false where none will be.
async fn is_wanted(wanted: &watch::Receiver<bool>, stop: &CancellationToken) -> bool {
    let mut wanted = wanted.clone();
    let wants = stop.run_until_cancelled(wanted.wait_for(|wanted| *wanted));
    matches!(wants.await, Some(Ok(_)))
}

async fn until_unwanted(mut wanted: watch::Receiver<bool>, stop: CancellationToken) {
    let unwanted = wanted.wait_for(|wanted| !*wanted);
    let _ = stop.run_until_cancelled(unwanted).await;
}

/// Twice as long each time, from half of it to one and a half by chance.
fn pause(failures: u32, chance: u32) -> Duration {
    let whole = BASE.saturating_mul(2_u32.saturating_pow(failures)).min(CAP);
    let share = f64::from(chance) / f64::from(u32::MAX);
    whole.mul_f64(0.5 + share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tunnel_is_opened_again_soon_and_then_later_and_by_chance() {
        for (failures, chance, seconds) in [
            (0, 0, 1.0),
            (0, u32::MAX, 3.0),
            (1, 0, 2.0),
            (3, 0, 8.0),
            (8, 0, 150.0),
            (99, u32::MAX, 450.0),
        ] {
            let found = pause(failures, chance).as_secs_f64();
            assert!(
                (found - seconds).abs() < 0.001,
                "{failures} {chance}: {found}"
            );
        }
    }
}
