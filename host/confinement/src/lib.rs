//! What a process does to itself before it runs code that it did not write.
//!
//! Three programs of the host run foreign code or hold it: the process of a wasm service, the worker of the plugins, and
//! the compiler. The sandbox of WebAssembly is their first wall; [`Confinement`] is the second, for the day on which the
//! first one has a hole. [`Confinement::apply`] is called by a process of one thread, once everything is open that it
//! needs, and takes away what can be taken away; a [`Report`] says what is in force then and what the system lacks.
//!
//! ```text
//! priority ──> user, groups ──> no new privileges ──> capabilities ──> files ──> limits ──> system calls
//! ```
//!
//! The order matters: each step needs what a later one takes. What bounds a whole process, [`ControlGroups`], is made by
//! whoever starts it. What a wall is worth without the others is not decided
//! here: a policy says which may be missing ([`Report::missing`]), and the caller asks before it goes on.

#![warn(missing_docs)]

mod bounds;
mod capabilities;
mod control_groups;
mod files;
mod identity;
mod report;
mod system_calls;

use std::fs;
use std::io;

use rustix::thread::{no_new_privs, set_no_new_privs};

use files::Enforcement;

pub use bounds::{Bound, Bounds};
pub use capabilities::without_capabilities;
pub use control_groups::{ControlGroup, ControlGroups, GroupLimits, groups_below, remove_groups};
pub use files::FileAccess;
pub use identity::{Identity, can_become};
pub use report::{MissingWall, Report, Wall};
pub use system_calls::{Sockets, SystemCalls};

/// What a process is to be left with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Confinement {
    /// What it may use up.
    pub bounds: Bounds,
    /// Who it becomes; `None` leaves it who it is.
    pub identity: Option<Identity>,
    /// The files that it reaches by a path; `None` leaves that to their owners and modes.
    pub files: Option<FileAccess>,
    /// The system calls that it may make; `None` is all of them.
    pub system_calls: Option<SystemCalls>,
}

/// Why a process is not confined. It is not to go on then: it may be half of what it was.
#[derive(Debug, thiserror::Error)]
pub enum ConfinementError {
    /// The kernel's calls change one thread, and another would keep all that this one gave up.
    #[error("a process with {0} threads cannot be confined, only one with a single thread")]
    Threads(usize),
    /// `/proc` does not say how many threads there are.
    #[error("failed to count the threads of the process in `/proc/self/task`")]
    Uncounted(#[source] io::Error),
    /// It cannot become who it shall be.
    #[error("failed to become user {uid} of group {gid}")]
    Identity {
        /// The user that it was to become.
        uid: u32,
        /// The group.
        gid: u32,
        /// What the system said.
        source: io::Error,
    },
}

impl Confinement {
    /// Confines this process, for good.
    ///
    /// A wall that the system lacks is no error but stands in the report.
    ///
    /// # Errors
    /// Where the process has a second thread, or cannot become another user.
    pub fn apply(&self) -> Result<Report, ConfinementError> {
        let tasks = fs::read_dir("/proc/self/task").map_err(ConfinementError::Uncounted)?;
        match tasks.count() {
            1 => {}
            more => return Err(ConfinementError::Threads(more)),
        }
        let mut report = Report::default();
        let rank = self.bounds.rank();
        // The bounding set first: who is no longer root cannot change it.
        let bounding = capabilities::empty_bounding_set();
        if let Some(identity) = &self.identity {
            identity
                .become_it()
                .map_err(|source| ConfinementError::Identity {
                    uid: identity.uid,
                    gid: identity.gid,
                    source: source.into(),
                })?;
            report.holds(Wall::User);
        } else {
            report.note(Wall::User, identity::is_nobody_special());
        }
        let privileges = set_no_new_privs(true).and_then(|()| no_new_privs());
        match privileges {
            Ok(true) => report.holds(Wall::NoNewPrivileges),
            Ok(false) => report.lacks(Wall::NoNewPrivileges, "the kernel did not keep it"),
            Err(error) => report.lacks(Wall::NoNewPrivileges, error),
        }
        report.note(Wall::Capabilities, capabilities::give_up(bounding));
        if let Some(files) = &self.files {
            match files.enforce() {
                Ok(Enforcement::Whole) => report.holds(Wall::Files),
                Ok(Enforcement::Partial(reason)) => report.is_lower(Wall::Files, reason),
                Err(reason) => report.lacks(Wall::Files, reason),
            }
        }
        // Late, since each step above opens something, and before the calls that set them are refused.
        report.note(Wall::Bounds, rank.and(self.bounds.limit()));
        if let Some(calls) = &self.system_calls {
            report.note(Wall::SystemCalls, calls.enforce());
        }
        Ok(report)
    }
}
