//! What tasks tell the loop, and what callers ask of it.

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

use crate::actions::ActionReply;
use crate::device_plan::LoopSnapshot;
use crate::locks::LockSubjects;
use crate::view::{Effect, Listing};
use crate::{HostLook, OsAction, OsLook, ReleaseVerdict, UpdateLocks, UpdatePostponement};

pub(crate) enum Message {
    Listed(Listing),
    Effect(Effect),
    /// What a step does with a service from now until it is finished.
    ServiceState(ServiceKey, ServiceState),
    /// What the registry says of an image.
    Kind(ImageRef, EngineKind),
    /// The store holds what was to be remembered.
    Stored(StoredRecord),
    /// What the plugins say of a release.
    ReleaseVerdict(AppUuid, Commit, ReleaseVerdict),
    /// What became of writing the record of an app's releases.
    ReleaseRecord(AppUuid, RecordWrite),
    LocksTaken(AppUuid, Arc<UpdateLocks>),
    /// A user's lock is gone.
    LockGone(AppUuid),
    Finished(Subject, Result<(), StepFailure>),
    /// What became of noting an action in the store.
    ActionWritten(AppUuid, u64, Result<(), String>),
    /// The clean-up on leaving local mode is done.
    LeftLocalMode,
    /// What a look at the host has shown.
    HostLooked(HostLook),
    /// The host may be another than it was.
    HostChanged,
    /// How the operating system stands.
    OsLooked(OsLook),
    /// What became of something that was done with it.
    OsDone(OsAction, Result<(), String>),
    /// What became of its activation, while the locks of all apps are held.
    OsActivated(Result<(), String>),
    /// What the plugins say of an app in the version that is on trial.
    OsVerdict(AppUuid, ReleaseVerdict),
    /// What became of writing the record of it.
    OsRecord(RecordWrite),
    /// The reboot that was begun does not take place.
    NotRebooted,
    Command(Command),
}

/// What became of writing a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordWrite {
    Done,
    Failed,
    /// It failed a while ago.
    Again,
}

/// A change of what the store holds, also for the loop's own copy of it.
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
    /// The user's lock that was in the way.
    pub lock: Option<PathBuf>,
    /// Another operation of this supervisor holds the lock.
    pub is_busy: bool,
    /// A plugin postpones it.
    pub postponement: Option<UpdatePostponement>,
    /// It was stopped since nobody wants it any more: no failure to count.
    pub cancelled: bool,
}

pub(crate) enum Command {
    /// A new target, which the store holds. Answered once it is what the device is measured by.
    Target {
        target: ActiveTarget,
        force: bool,
        reply: oneshot::Sender<()>,
    },
    /// Local mode begins; the store knows.
    EnterLocalMode {
        target: ActiveTarget,
        reply: oneshot::Sender<()>,
    },
    /// Local mode ends; the store knows.
    LeaveLocalMode {
        /// What the device goes back to.
        resumes: Option<ActiveTarget>,
        reply: oneshot::Sender<()>,
    },
    /// Whether somebody is asking right now what there is to do.
    Checking(bool),
    /// Something to be done with services beside the target.
    Act(Action, ActionReply),
    /// All apps are locked and their services stopped, so that the host can go down.
    Quiesce {
        force: bool,
        locked: ActionReply,
        stopped: oneshot::Sender<()>,
    },
    /// The host did not go down: everything goes on.
    Resume,
    /// Which volumes the target names, as engines know them.
    WantedVolumes(oneshot::Sender<BTreeSet<String>>),
    /// Nothing but an answer, by dropping it.
    Answer(oneshot::Sender<()>),
    /// What the loop knows, to foresee what comes.
    Snapshot(oneshot::Sender<LoopSnapshot>),
    /// What decides which locks are taken for all apps.
    Locking(oneshot::Sender<LockSubjects>),
    /// A service's key to the API was replaced.
    KeyReplaced {
        /// The target with the new one, of the mode that the device is in.
        target: Option<ActiveTarget>,
        reply: oneshot::Sender<()>,
    },
    /// Look, and try at once what waits to be tried again.
    LookAgain,
    /// The cloud was asked and has no other target.
    BeginUpdate,
    /// Apply the target again.
    Trigger { force: bool, cancel: bool },
}

/// What the device is measured by.
#[derive(Debug, Clone)]
pub(crate) struct ActiveTarget {
    /// What it comes from; one that is no other is no new attempt.
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

    /// As whoever waits for the locks of an action is answered.
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
