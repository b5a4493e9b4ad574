//! How a process restricts itself before it runs code that it did not write.
//!
//! Three programs of the host run foreign code or hold it: the process of a wasm service, the worker of the plugins,
//! and the compiler. The sandbox of WebAssembly is their first wall; [`Confinement`] is the second, in case the first
//! one has a hole. A process with one thread calls [`Confinement::apply`] after it has opened everything that it needs;
//! this takes away everything that can be taken away. A [`Report`] says what is then in force and what the system
//! lacks.
//!
//! ```text
//! priority ──> user, groups ──> no new privileges ──> capabilities ──> files ──> limits ──> system calls
//! ```
//!
//! The order matters: each step needs something that a later one takes away. The limits for a whole process,
//! [`ControlGroups`], are set up by its parent. How much a wall is worth without the others is not decided here: a
//! policy says which walls may be missing ([`Report::missing`]), and the caller checks this before it continues.

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
pub use control_groups::{
    ControlGroup, ControlGroups, GroupLimits, groups_below, kill_groups, remove_groups,
};
pub use files::FileAccess;
pub use identity::{Identity, can_become};
pub use report::{MissingWall, Report, Wall};
pub use system_calls::{Sockets, SystemCalls};

/// What a process keeps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Confinement {
    /// The limits on what it uses up.
    pub bounds: Bounds,
    /// The user that it becomes; `None` keeps its user.
    pub identity: Option<Identity>,
    /// The files that it can reach by a path; `None` leaves that to their owners and modes.
    pub files: Option<FileAccess>,
    /// The system calls that it may make; `None` allows all of them.
    pub system_calls: Option<SystemCalls>,
}

/// The reason why a process is not confined. It must not continue then: it may be half confined.
#[derive(Debug, thiserror::Error)]
pub enum ConfinementError {
    /// The kernel's calls change one thread, and other threads would keep everything that this one gave up.
    #[error("a process with {0} threads cannot be confined, only one with a single thread")]
    Threads(usize),
    /// `/proc` does not say how many threads there are.
    #[error("failed to count the threads of the process in `/proc/self/task`")]
    Uncounted(#[source] io::Error),
    /// It cannot become the intended user.
    #[error("failed to become user {uid} of group {gid}")]
    Identity {
        /// The intended user.
        uid: u32,
        /// The group.
        gid: u32,
        /// The system's error.
        source: io::Error,
    },
}

impl Confinement {
    /// Confines this process permanently.
    ///
    /// A wall that the system lacks is not an error, but is named in the report.
    ///
    /// # Errors
    /// If the process has a second thread, or cannot become another user.
    pub fn apply(&self) -> Result<Report, ConfinementError> {
        let tasks = fs::read_dir("/proc/self/task").map_err(ConfinementError::Uncounted)?;
        match tasks.count() {
            1 => {}
            more => return Err(ConfinementError::Threads(more)),
        }
        let mut report = Report::default();
        let rank = self.bounds.rank();
        // The bounding set first: only root can change it.
        let bounding = capabilities::empty_bounding_set();
        if let Some(identity) = &self.identity {
            identity
                .become_it()
                .map_err(|source| ConfinementError::Identity {
                    uid: identity.uid,
                    gid: identity.gid,
                    source: source.into(),
                })?;
            report.record_in_force(Wall::User);
        } else {
            report.note(Wall::User, identity::is_nobody_special());
        }
        let privileges = set_no_new_privs(true).and_then(|()| no_new_privs());
        match privileges {
            Ok(true) => report.record_in_force(Wall::NoNewPrivileges),
            Ok(false) => report.record_missing(Wall::NoNewPrivileges, "the kernel did not keep it"),
            Err(error) => report.record_missing(Wall::NoNewPrivileges, error),
        }
        report.note(Wall::Capabilities, capabilities::give_up(bounding));
        if let Some(files) = &self.files {
            match files.enforce() {
                Ok(Enforcement::Whole) => report.record_in_force(Wall::Files),
                Ok(Enforcement::Partial(reason)) => report.is_lower(Wall::Files, reason),
                Err(reason) => report.record_missing(Wall::Files, reason),
            }
        }
        // Late, since each step above opens something, but before the calls that set limits are refused.
        report.note(Wall::Bounds, rank.and(self.bounds.limit()));
        if let Some(calls) = &self.system_calls {
            report.note(Wall::SystemCalls, calls.enforce());
        }
        Ok(report)
    }
}
