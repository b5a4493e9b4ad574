//! Whether the cloud's targets must be signed, and the outcome of the last one.

use std::sync::Arc;

use model::compose::{DeviceFacts, is_not_ours};
use model::{RefusedTarget, SetTargetError, TargetState, error_chain};
use signed_targets::{AcceptedReleases, JudgementContext, TargetPolicy, judge};
use store::{Store, StoreError};

use crate::clock::now_ms;

/// Reads which signatures the device's owner requires, again for each target; `None` if none are required. An error
/// describes what is wrong with the policy: then the requirements are unknown, so no target is accepted.
pub type ReadTargetPolicy = Arc<dyn Fn() -> Result<Option<TargetPolicy>, String> + Send + Sync>;

/// The state of signatures of targets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SigningState {
    /// Whether targets must be signed.
    pub is_required: bool,
    /// The cloud's last target, if it was refused for its signatures. The previous one is still in force then.
    pub refused: Option<RefusedTarget>,
}

/// The basis for judging targets of the cloud.
pub(crate) struct TargetJudge {
    pub read_policy: ReadTargetPolicy,
}

impl TargetJudge {
    /// Returns the releases that the device has accepted once it accepts the target; `None` if no signatures are
    /// required. Blocks for the policy's file and the store.
    pub(crate) fn judge(
        &self,
        target: &TargetState,
        facts: &DeviceFacts,
        store: &Store,
    ) -> Result<Option<AcceptedReleases>, SetTargetError> {
        let refused = |reasons| {
            let apps = target.apps.iter();
            let releases = apps.filter_map(|(uuid, app)| {
                let release = app.release.as_ref()?;
                Some((uuid.clone(), release.commit.clone()))
            });
            let releases = releases.collect();
            SetTargetError::NotSigned(RefusedTarget { reasons, releases })
        };
        let policy = (self.read_policy)();
        let Some(policy) = policy.map_err(|why| refused(vec![unreadable(&why)]))? else {
            return Ok(None);
        };
        let accepted = accepted(store).map_err(|why| refused(vec![why]))?;
        let context = JudgementContext {
            // A clock before 1970 has not been set yet.
            ms: u64::try_from(now_ms()).unwrap_or_default(),
            accepted: &accepted,
            is_not_ours: &|app| is_not_ours(app, facts),
        };
        let judged = judge(target, &policy, &context);
        judged.map(Some).map_err(|refusal| refused(refusal.reasons))
    }

    /// Checks that local targets are allowed.
    pub(crate) fn allow_local(&self) -> Result<(), SetTargetError> {
        let refused = |why| SetTargetError::LocalNotSigned(why);
        match (self.read_policy)() {
            Ok(Some(policy)) if !policy.local => Err(refused(
                "this device accepts only signed targets, and its policy does not have `local = true` in [targets]"
                    .to_owned(),
            )),
            Ok(_) => Ok(()),
            Err(why) => Err(refused(unreadable(&why))),
        }
    }

    /// Returns whether targets must be signed, as far as that can be determined.
    pub(crate) fn is_required(&self) -> bool {
        !matches!((self.read_policy)(), Ok(None))
    }
}

fn unreadable(why: &str) -> String {
    format!("the policy says which targets have to be signed, and it cannot be read: {why}")
}

fn accepted(store: &Store) -> Result<AcceptedReleases, String> {
    let stored = store
        .signed_targets()
        .map_err(|error: StoreError| error_chain(&error))?;
    let Some(stored) = stored else {
        return Ok(AcceptedReleases::default());
    };
    serde_json::from_value(stored).map_err(|error| {
        format!("the releases that were accepted before cannot be read from the store: {error}")
    })
}
