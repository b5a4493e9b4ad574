//! The share of the database for one caller: which connections, and how many of them at a time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::HttpBody as _;
use axum::response::Response;
use cloud_core::limits::RateLimitKey;
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How long a request waits for earlier ones.
const WAIT: Duration = Duration::from_secs(10);

/// The callers that use the database.
#[derive(Default)]
pub(crate) struct Shares {
    turns_of: Mutex<HashMap<RateLimitKey, Arc<Semaphore>>>,
}

/// One caller's turn at the database, until it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    _permit: OwnedSemaphorePermit,
}

impl Shares {
    /// Waits for a turn; none if the payer's other requests held all turns for as long as a request
    /// waits.
    pub(crate) async fn share(&self, payer: RateLimitKey, most: usize) -> Option<Share> {
        let turns = self
            .turns_of
            .lock()
            .entry(payer)
            .or_insert_with(|| Arc::new(Semaphore::new(most)))
            .clone();
        let permit = tokio::time::timeout(WAIT, turns.acquire_owned()).await;
        Some(Share {
            _permit: permit.ok()?.ok()?,
        })
    }

    /// Removes callers without requests.
    pub(crate) fn tidy(&self) {
        let mut permits = self.turns_of.lock();
        permits.retain(|_, turns| Arc::strong_count(turns) > 1);
        permits.shrink_to_fit();
    }
}

impl Share {
    /// Keeps the turn until the answer is sent, if it is still being read from the database.
    pub(crate) fn until_sent(self, response: Response) -> Response {
        if response.body().size_hint().exact().is_some() {
            return response;
        }
        response.map(|body| {
            let sending = body.map_frame(move |frame| {
                let _turn = &self;
                frame
            });
            axum::body::Body::new(sending)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_caller_waits_for_itself_and_for_nobody_else() {
        let shares = Shares::default();
        let first = shares
            .share(RateLimitKey::Actor(1), 1)
            .await
            .expect("a turn");
        let other = shares
            .share(RateLimitKey::Actor(2), 1)
            .await
            .expect("another's");
        let refused = shares.share(RateLimitKey::Actor(1), 1).await;
        assert!(refused.is_none(), "{refused:?}");
        shares.tidy();
        assert_eq!(shares.turns_of.lock().len(), 2, "they are at it");
        drop((first, other));
        shares
            .share(RateLimitKey::Actor(1), 1)
            .await
            .expect("a turn");
        shares.tidy();
        assert_eq!(shares.turns_of.lock().len(), 0);
    }
}
