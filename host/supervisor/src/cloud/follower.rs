//! The reconciler behind the interface of the cloud's link: it accepts targets, and determines how
//! the link works.

use cloud_link::{Settings, TargetRefusal};
use futures::FutureExt;
use futures::future::BoxFuture;
use model::SetTargetError;
use reconcile::Reconciler;
use serde_json::Value;

/// The reconciler behind the interface of the poll.
pub(super) struct Follower(pub(super) Reconciler);

impl cloud_link::Device for Follower {
    fn take(&self, target: Value, force: bool) -> BoxFuture<'_, Result<(), TargetRefusal>> {
        async move {
            match self.0.set_cloud_target(target, force).await {
                Ok(_) => Ok(()),
                Err(error @ SetTargetError::Store(_)) => {
                    Err(TargetRefusal::Failed(error.to_string()))
                }
                Err(error @ SetTargetError::NotSigned(_)) => {
                    Err(TargetRefusal::NotNow(error.to_string()))
                }
                Err(error) => Err(TargetRefusal::Invalid(error.to_string())),
            }
        }
        .boxed()
    }

    fn unchanged(&self) {
        self.0.begin_update();
    }

    fn apply_again(&self, force: bool, cancel: bool) {
        self.0.trigger(force, cancel);
    }

    fn checking(&self, checks: bool) {
        self.0.set_checking(checks);
    }

    fn settings(&self) -> Settings {
        settings(&self.0)
    }
}

pub(super) fn settings(reconciler: &Reconciler) -> Settings {
    let settings = reconciler.effective_settings();
    let settings = &settings.borrow().settings;
    Settings {
        interval: settings.poll_interval,
        request_timeout: settings.request_timeout,
        instant_updates: settings.instant_updates,
        connectivity_check: settings.connectivity_check,
    }
}
