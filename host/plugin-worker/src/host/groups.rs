//! The control groups around a worker's process.

use std::path::{Path, PathBuf};
use std::time::Duration;

use confinement::{ControlGroups, GroupLimits, Report};

/// What the process may use beside the memory of its instances, in bytes: itself, compiled code, bodies on their way.
const OVERHEAD: u64 = 64 << 20;
/// The most threads. Without groups its user's limit is the same (`supervisor-wasm`).
const THREADS: u64 = 128;
/// How long the kernel may take to let go of a process that was killed, and how often it is asked.
const LETS_GO: (Duration, u32) = (Duration::from_millis(10), 500);

/// The groups of one process. With this they go.
pub(super) struct ProcessGroups {
    name: PathBuf,
    memory: u64,
    groups: ControlGroups,
}

impl ProcessGroups {
    /// Makes those of the process with this number, for instances that have so much memory together, and puts it in;
    /// answers which walls stand around it by them. Blocks.
    pub(super) fn around(
        process: u32,
        below: &Path,
        generation: u64,
        memory: usize,
    ) -> (ProcessGroups, Report) {
        let name = below.join(format!("{}-{generation}", std::process::id()));
        let memory = u64::try_from(memory).unwrap_or(u64::MAX);
        let memory = memory.saturating_add(OVERHEAD);
        let limits = GroupLimits {
            memory,
            processes: THREADS,
            // It is behind others for the processor, and may have what they leave.
            nano_cpus: 0,
        };
        let groups = ControlGroups::make(&name, &limits);
        let report = groups.enter(process);
        let groups = ProcessGroups {
            name,
            memory,
            groups,
        };
        (groups, report)
    }

    /// Why the kernel ended the process, where it did.
    pub(super) fn why_ended(&self) -> Option<String> {
        let mebibytes = self.memory >> 20;
        (self.groups.ended_for_memory() > 0).then(|| {
            format!("the kernel killed it, because it used more than its {mebibytes} MiB of memory")
        })
    }
}

impl Drop for ProcessGroups {
    fn drop(&mut self) {
        if self.groups.made.is_empty() || confinement::remove_groups(&self.name).is_ok() {
            return;
        }
        // Its process was killed a moment ago. Without a runtime the next start removes them.
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

/// Removes what supervisors left that were killed.
pub(super) fn sweep(below: &Path) {
    for group in confinement::groups_below(below) {
        let process = group.split_once('-').map(|(process, _)| process);
        let is_there = process.is_some_and(|pid| Path::new("/proc").join(pid).exists());
        if !is_there {
            // One with a process that outlives them is left to whoever comes next.
            let _ = confinement::remove_groups(&below.join(group));
        }
    }
}
