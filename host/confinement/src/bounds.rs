//! Limits on what a process can use up.

use std::fs;

use rustix::process::{
    Resource, Rlimit, Signal, getpriority_process, getrlimit, set_parent_process_death_signal,
    setpriority_process, setrlimit,
};

/// A limit of the kernel on what a process uses (setrlimit(2)), which it cannot raise again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// Bytes of address space.
    AddressSpace(u64),
    /// Seconds of CPU time. Then a separate signal ends the process, so its parent knows the reason; a second one,
    /// which cannot be caught, follows [`LAST_WORDS`] later.
    CpuSeconds(u64),
    /// Bytes of a core dump.
    CoreDump(u64),
    /// Bytes of a file that it writes.
    FileSize(u64),
    /// Open descriptors.
    Descriptors(u64),
    /// Threads and processes of its user, in total.
    Processes(u64),
}

/// Seconds of CPU time between the two signals of [`Bound::CpuSeconds`].
const LAST_WORDS: u64 = 2;

impl Bound {
    fn resource(self) -> (Resource, u64) {
        match self {
            Bound::AddressSpace(bytes) => (Resource::As, bytes),
            Bound::CpuSeconds(seconds) => (Resource::Cpu, seconds),
            Bound::CoreDump(bytes) => (Resource::Core, bytes),
            Bound::FileSize(bytes) => (Resource::Fsize, bytes),
            Bound::Descriptors(count) => (Resource::Nofile, count),
            Bound::Processes(count) => (Resource::Nproc, count),
        }
    }

    fn put_on(self) -> Result<(), String> {
        let (resource, most) = self.resource();
        let last = match self {
            Bound::CpuSeconds(_) => most.saturating_add(LAST_WORDS),
            _ => most,
        };
        // A lower limit stays: raising it takes rights, and nobody asked for more.
        let last = getrlimit(resource)
            .maximum
            .map_or(last, |now| now.min(last));
        let limit = Rlimit {
            current: Some(most.min(last)),
            maximum: Some(last),
        };
        setrlimit(resource, limit).map_err(|error| format!("failed to set {self:?}: {error}"))
    }
}

/// The bounds of a process, and its rank among other processes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Limits on what the process uses.
    pub limits: Vec<Bound>,
    /// Its priority for the processor, -20 to 19. It also applies to disks: a process without its own class for them is
    /// ranked by it (ioprio_set(2)).
    pub niceness: Option<i32>,
    /// How soon it is killed when memory runs out, -1000 to 1000.
    pub oom_score: Option<i64>,
    /// Whether the kernel kills it when the thread that started it ends (`PR_SET_PDEATHSIG`).
    pub ends_with_parent: bool,
}

impl Bounds {
    /// Sets its rank among other processes.
    pub(crate) fn rank(&self) -> Result<(), String> {
        if let Some(niceness) = self.niceness
            // A process with a lower priority keeps it.
            && getpriority_process(None).is_ok_and(|now| now < niceness)
        {
            setpriority_process(None, niceness)
                .map_err(|error| format!("failed to set the priority {niceness}: {error}"))?;
        }
        if let Some(score) = self.oom_score {
            fs::write("/proc/self/oom_score_adj", score.to_string())
                .map_err(|error| format!("failed to set the OOM score {score}: {error}"))?;
        }
        Ok(())
    }

    /// Sets its limits, once nothing more needs to be opened. Tries all of them.
    pub(crate) fn limit(&self) -> Result<(), String> {
        let failures = self.limits.iter().map(|limit| limit.put_on());
        let mut failures: Vec<String> = failures.filter_map(Result::err).collect();
        // The kernel forgets the signal when the process becomes another user, so it is set after that.
        if self.ends_with_parent
            && let Err(error) = set_parent_process_death_signal(Some(Signal::KILL))
        {
            failures.push(format!("failed to tie it to its parent: {error}"));
        }
        if failures.is_empty() {
            Ok(())
        } else {
            Err(failures.join("; "))
        }
    }
}
