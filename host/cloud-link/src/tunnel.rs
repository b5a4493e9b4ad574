//! The tunnel by which the cloud reaches the device: one connection that the device opens and keeps, on which the cloud
//! sends requests and the device answers (crate `tunnel`). Through it a change of the target arrives at once; without
//! it the device polls.
//!
//! A connection that ends is opened again, soon at first and then less and less often. The waits vary randomly, so
//! devices that lost their cloud together do not come back together. If a cloud announces that it is going away, the
//! device reconnects at once: another replica has the device before anybody misses it.

use std::error::Error;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use ::tunnel::{CloseMessage, CloseReason, End, over, serve};
use http::{Request, Response};
use hyper::body::Incoming;
use model::{Backoff, error_chain};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::client::{Client, CloudError};

/// The wait after the first failure, and the longest.
const BASE: Duration = Duration::from_secs(2);
const CAP: Duration = Duration::from_secs(300);
/// A tunnel that lasted this long does not count as a failure.
const LASTED: Duration = Duration::from_secs(60);
/// How long current requests may take when the tunnel is to close.
const GRACE: Duration = Duration::from_secs(5);
/// How long to wait for the cloud's reason when it has closed the tunnel.
const LAST_WORD: Duration = Duration::from_secs(1);
/// After this many times in a row, a cloud that goes away is given time.
const TOO_OFTEN: u32 = 3;

/// Keeps a tunnel while `is_enabled`, once `ready` is cancelled, until `stop`; ends when it is closed after that.
/// `protocol` is its WebSocket subprotocol; `answer` answers the requests that arrive through it. Runs in a tokio
/// runtime.
pub fn keep_tunnel<F, A, B>(
    client: Arc<Client>,
    protocol: String,
    is_enabled: watch::Receiver<bool>,
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
        let mut backoff = Backoff::new(BASE);
        loop {
            if !until_enabled(is_enabled.clone(), &stop).await {
                return;
            }
            let begun = Instant::now();
            let closing = until_disabled(is_enabled.clone(), stop.clone());
            let ended = once(&client, &protocol, answer.clone(), closing).await;
            if stop.is_cancelled() {
                return;
            }
            if begun.elapsed() >= LASTED {
                backoff.reset();
            }
            let chance = getrandom::u32().unwrap_or(0);
            let is_tolerable = backoff.failures() < TOO_OFTEN;
            let pause = by_chance(backoff.next_wait(CAP), chance);
            let wait = match ended {
                Ok(Some(reason)) if reason.is(CloseReason::GoingAway) && is_tolerable => {
                    soon(chance)
                }
                // Also if the tunnel was disabled.
                Ok(_) => pause,
                Err(error) => {
                    let why = error_chain(&error);
                    tracing::debug!("the cloud cannot reach this device directly: {why}");
                    pause.max(error.retry_after().unwrap_or_default())
                }
            };
            if stop.run_until_cancelled(sleep(wait)).await.is_none() {
                return;
            }
        }
    })
}

/// Runs one connection from its beginning to its end; returns the cloud's reason if it closed it.
async fn once<F, A, B>(
    client: &Client,
    protocol: &str,
    answer: F,
    closing: impl Future<Output = ()>,
) -> Result<Option<CloseMessage>, CloudError>
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
        () = closing.as_mut() => return Ok(None),
    };
    tracing::info!("the cloud reaches this device directly");
    let (pipe, parting) = over(connection, End::Device).await;
    let cut = CancellationToken::new();
    let cancel = cut.clone();
    let stopping = async move {
        closing.await;
        cancel.cancel();
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
    if cut.is_cancelled() {
        tracing::info!(
            "the cloud no longer reaches this device directly: the tunnel was closed here"
        );
        return Ok(None);
    }
    // Also if the connection broke and cut off current requests.
    if let Ok(Some(reason)) = timeout(LAST_WORD, parting.close_message()).await {
        tracing::info!("the cloud no longer reaches this device directly: {reason}");
        return Ok(Some(reason));
    }
    tracing::info!("the cloud no longer reaches this device directly: the connection was lost");
    match served {
        Ok(()) => Ok(None),
        Err(error) => Err(CloudError::Unreachable(error.into())),
    }
}

/// Waits until a tunnel is enabled; returns false if none will be.
async fn until_enabled(mut is_enabled: watch::Receiver<bool>, stop: &CancellationToken) -> bool {
    let opening = stop.run_until_cancelled(is_enabled.wait_for(|is_enabled| *is_enabled));
    matches!(opening.await, Some(Ok(_)))
}

async fn until_disabled(mut is_enabled: watch::Receiver<bool>, stop: CancellationToken) {
    let disabled = is_enabled.wait_for(|is_enabled| !*is_enabled);
    let _ = stop.run_until_cancelled(disabled).await;
}

/// Returns between half of it and one and a half times.
fn by_chance(whole: Duration, chance: u32) -> Duration {
    let share = f64::from(chance) / f64::from(u32::MAX);
    whole.mul_f64(0.5 + share)
}

/// Returns a short random time: a replica may have had thousands of devices.
fn soon(chance: u32) -> Duration {
    BASE.mul_f64(f64::from(chance) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cloud_that_goes_away_is_looked_for_at_once_but_for_chance() {
        assert_eq!(soon(0), Duration::ZERO);
        assert_eq!(soon(u32::MAX), BASE);
    }

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
            let whole = Backoff::from_failures(BASE, failures).next_wait(CAP);
            let pause = by_chance(whole, chance).as_secs_f64();
            assert!(
                (pause - seconds).abs() < 0.001,
                "{failures} {chance}: {pause}"
            );
        }
    }
}
