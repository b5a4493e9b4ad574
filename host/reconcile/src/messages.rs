//! The messages of tasks to the loop, and the requests of callers.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use model::{
    Action, ActionError, AppUuid, Commit, ContainerId, DesiredState, EngineKind, ImageRef,
    ServiceKey, ServiceState, Settings, TargetState,
};
use plan::{ImageUser, Subject};
use store::Definition;
use tokio::sync::oneshot;

use crate::device_plan::LoopSnapshot;
use crate::locks::LockSubjects;
use crate::view::{Effect, Listing};
use crate::{
    HostComparison, OsAction, OsObservation, ReleaseVerdict, UpdateLocks, UpdatePostponement,
};

pub(crate) enum Message {
    Listed(Listing),
    Effect(Effect),
    /// The state of a service from now on until the step is finished.
    ServiceState(ServiceKey, ServiceState),
    /// The engine for an image, as the registry reports it.
    Kind(ImageRef, EngineKind),
    /// The store holds the record.
    Stored(StoredRecord),
    /// The plugins' verdict on a release.
    ReleaseVerdict(AppUuid, Commit, ReleaseVerdict),
    /// The outcome of writing the record of an app's releases.
    ReleaseRecord(AppUuid, RecordWrite),
    LocksTaken(AppUuid, Arc<UpdateLocks>),
    /// A user's lock is gone.
    LockGone(AppUuid),
    Finished(Subject, Result<(), StepFailure>),
    /// The outcome of storing an action.
    ActionWritten(AppUuid, u64, Result<(), String>),
    /// The clean-up on leaving local mode is done.
    LeftLocalMode,
    /// The result of comparing the host with its desired configuration.
    HostLooked(HostComparison),
    /// The host may have changed.
    HostChanged,
    /// The state of the operating system.
    OsLooked(OsObservation),
    /// The outcome of an operation on the operating system.
    OsDone(OsAction, Result<(), String>),
    /// The outcome of its activation, while the locks of all apps are held.
    OsActivated(Result<(), String>),
    /// The plugins' verdict on an app in the version that is on trial.
    OsVerdict(AppUuid, ReleaseVerdict),
    /// The outcome of writing its record.
    OsRecord(RecordWrite),
    /// The reboot that was begun does not take place.
    NotRebooted,
    Command(Command),
}

/// The outcome of writing a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordWrite {
    Done,
    Failed,
    /// It failed a while ago and is due again.
    Again,
}

/// A change to the store, which the loop also applies to its own copy.
#[derive(Debug, Clone)]
pub(crate) enum StoredRecord {
    /// The supervisor pulls an image, for these services.
    Image(ImageRef, Vec<ImageUser>),
    NoImage(ImageRef),
    Definition(Definition),
    Commit(AppUuid, Commit),
    NoCommit(AppUuid),
    Stopped(ContainerId),
    NotStopped(ContainerId),
}

/// Why a step did not succeed.
#[derive(Debug, Default)]
pub(crate) struct StepFailure {
    /// One line, with its causes.
    pub reason: String,
    /// The user's lock that prevented it.
    pub lock: Option<PathBuf>,
    /// Another operation of this supervisor holds the lock.
    pub is_busy: bool,
    /// A plugin postpones it.
    pub postponement: Option<Box<UpdatePostponement>>,
    /// It was stopped because it is no longer needed: not counted as a failure.
    pub cancelled: bool,
    /// The container that the engine refused to start because of an earlier start.
    pub stuck_container: Option<ContainerId>,
}

/// The channel for the outcome of an action, which continues even if the caller has gone.
pub(crate) type ActionReply = oneshot::Sender<Result<(), ActionError>>;

pub(crate) enum Command {
    /// A new target, which the store holds. Answered once the device follows it.
    Target {
        target: ActiveTarget,
        force: bool,
        reply: oneshot::Sender<()>,
    },
    /// Local mode begins; this is stored already.
    EnterLocalMode {
        target: ActiveTarget,
        reply: oneshot::Sender<()>,
    },
    /// Local mode ends; this is stored already.
    LeaveLocalMode {
        /// The target that the device returns to.
        resumes: Option<ActiveTarget>,
        reply: oneshot::Sender<()>,
    },
    /// Whether the cloud is being polled for a new target right now.
    Checking(bool),
    /// A request concerning services, in addition to the target.
    Act(Action, ActionReply),
    /// Locks all apps and stops their services, so that the host can go down.
    Quiesce {
        force: bool,
        locked: ActionReply,
        stopped: oneshot::Sender<()>,
    },
    /// The host did not go down: everything continues.
    Resume,
    /// Queries the names of the target's volumes at the engines.
    TargetVolumes(oneshot::Sender<BTreeSet<String>>),
    /// Only asks for an answer, which is the dropping of the sender.
    Answer(oneshot::Sender<()>),
    /// Queries the state of the loop, for a forecast.
    Snapshot(oneshot::Sender<LoopSnapshot>),
    /// Queries the state that determines which locks are taken for all apps.
    Locking(oneshot::Sender<LockSubjects>),
    /// A service's API key was replaced.
    KeyReplaced {
        /// The target with the new key, for the current mode of the device.
        target: Option<ActiveTarget>,
        reply: oneshot::Sender<()>,
    },
    /// Observe again, and retry at once whatever waits for a retry.
    LookAgain,
    /// The cloud was polled and has no other target.
    BeginUpdate,
    /// Apply the target again.
    Trigger { force: bool, cancel: bool },
}

/// The target that the device follows.
#[derive(Debug, Clone)]
pub(crate) struct ActiveTarget {
    /// The source of the target; if it has not changed, this is not a new attempt.
    pub target: Option<Arc<TargetState>>,
    pub desired: DesiredState,
    pub settings: Settings,
}

impl StepFailure {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        StepFailure {
            reason: reason.into(),
            ..StepFailure::default()
        }
    }

    pub(crate) fn cancelled(reason: &str) -> Self {
        StepFailure {
            cancelled: true,
            ..StepFailure::new(reason)
        }
    }

    /// Returns the error for a caller that waits for the locks of an action.
    pub(crate) fn to_action_error(&self) -> ActionError {
        let reason = self.reason.clone();
        if self.lock.is_some() || self.is_busy {
            ActionError::Locked(reason)
        } else {
            ActionError::Failed(reason)
        }
    }
}

impl From<String> for StepFailure {
    fn from(reason: String) -> Self {
        StepFailure::new(reason)
    }
}
