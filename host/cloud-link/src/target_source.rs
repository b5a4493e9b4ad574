//! Where the poll gets the target from: the cloud, or what tests have in its place.

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;

use crate::client::{Client, CloudError, TargetAnswer};

/// The source of targets. [`Client`] implements it; tests have others.
pub trait Source: Send + Sync + 'static {
    /// Returns the target, unless it still matches `etag`. `limit` is for each phase of the exchange.
    fn target<'a>(
        &'a self,
        etag: Option<&'a str>,
        limit: Duration,
    ) -> BoxFuture<'a, Result<TargetAnswer, CloudError>>;
}

impl Source for Client {
    fn target<'a>(
        &'a self,
        etag: Option<&'a str>,
        limit: Duration,
    ) -> BoxFuture<'a, Result<TargetAnswer, CloudError>> {
        Client::target(self, etag, limit).boxed()
    }
}
