//! The control groups around a worker's process.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use confinement::{ControlGroups, GroupLimits, Report};

/// How much the process may use in addition to the memory of its instances, in bytes: for itself, compiled code, and
/// bodies on their way.
const OVERHEAD: u64 = 64 << 20;
/// The most threads. Without groups, its user has the same limit (`supervisor-wasm`).
const THREADS: u64 = 128;
/// How long to wait between checks whether the kernel has released a killed process, and how many checks to make.
const LETS_GO: (Duration, u32) = (Duration::from_millis(10), 500);

/// The groups of one process. They are removed when this is dropped.
pub(super) struct ProcessGroups {
    name: PathBuf,
    /// How much memory they may use now, in bytes.
    memory: AtomicU64,
    groups: ControlGroups,
}

impl ProcessGroups {
    /// Creates the groups of the process with this number, for instances with this much memory together, and moves it
    /// into them; returns which walls they provide. Blocks.
    pub(super) fn around(
        process: u32,
        below: &Path,
        generation: u64,
        memory: usize,
    ) -> (ProcessGroups, Report) {
        let name = below.join(format!("{}-{generation}", std::process::id()));
        let memory = with_overhead(memory);
        let limits = GroupLimits {
            memory,
            processes: THREADS,
            // It has lower priority for the processor than others, and may use what they leave.
            nano_cpus: 0,
        };
        let groups = ControlGroups::make(&name, &limits);
        let report = groups.enter(process);
        let groups = ProcessGroups {
            name,
            memory: AtomicU64::new(memory),
            groups,
        };
        (groups, report)
    }

    /// Returns the group of no process, with its files in an ordinary folder, for instances with this much memory.
    #[cfg(test)]
    pub(super) fn from_folder(folder: &Path, memory: usize) -> ProcessGroups {
        let group = confinement::ControlGroup {
            path: folder.to_owned(),
            walls: vec![confinement::Wall::Memory],
        };
        ProcessGroups {
            name: "platform-plugins-of-no-process/none".into(),
            memory: AtomicU64::new(with_overhead(memory)),
            groups: ControlGroups {
                made: vec![group],
                missing: Vec::new(),
            },
        }
    }

    /// Returns whether they allow less than instances with this much memory together may use.
    pub(super) fn are_below(&self, memory: usize) -> bool {
        self.memory.load(SeqCst) < with_overhead(memory)
    }

    /// Limits the process to instances with this much memory together. Blocks.
    ///
    /// # Errors
    /// Why the previous limit stays.
    pub(super) fn set_memory(&self, memory: usize) -> Result<(), String> {
        let memory = with_overhead(memory);
        self.groups.set_memory(memory)?;
        self.memory.store(memory, SeqCst);
        Ok(())
    }

    /// Returns why the kernel ended the process, if it did.
    pub(super) fn why_ended(&self) -> Option<String> {
        let mebibytes = self.memory.load(SeqCst) >> 20;
        (self.groups.ended_for_memory() > 0).then(|| {
            format!("the kernel killed it, because it used more than its {mebibytes} MiB of memory")
        })
    }
}

fn with_overhead(memory: usize) -> u64 {
    let memory = u64::try_from(memory).unwrap_or(u64::MAX);
    memory.saturating_add(OVERHEAD)
}

impl Drop for ProcessGroups {
    fn drop(&mut self) {
        if self.groups.made.is_empty() || confinement::remove_groups(&self.name).is_ok() {
            return;
        }
        // The process was killed a moment ago. Without a runtime, the next start removes its groups.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let name = self.name.clone();
            runtime.spawn(async move {
                for _ in 0..LETS_GO.1 {
                    tokio::time::sleep(LETS_GO.0).await;
                    if confinement::remove_groups(&name).is_ok() {
                        return;
                    }
                }
            });
        }
    }
}

/// Removes what killed supervisors left behind.
pub(super) fn sweep(below: &Path) {
    for group in confinement::groups_below(below) {
        let process = group.split_once('-').map(|(process, _)| process);
        let is_there = process.is_some_and(|pid| Path::new("/proc").join(pid).exists());
        if !is_there {
            // A group whose process is still running is left to the next start.
            let _ = confinement::remove_groups(&below.join(group));
        }
    }
}
