//! What the process of a service gives up before it runs anything.

use std::fs;
use std::path::Path;

use rustix::process::{Resource, Rlimit, getpid, setpriority_process, setrlimit, setsid};
use rustix::thread::{CpuSet, sched_setaffinity, set_no_new_privs};

use crate::record::Launch;

/// Behind the supervisor, which keeps 0.
const NICENESS: i32 = 5;
/// Ended before the supervisor when the machine's memory runs out, where nothing else is configured.
const OOM_SCORE: i64 = 300;
/// Descriptors of a process, its service's sockets and files among them.
const MAX_DESCRIPTORS: u64 = 4096;

/// Leaves the supervisor's session, so that nothing that ends it ends this process, and lowers what
/// the process may do. What the system does not let us lower is left as it is: the limits that
/// services rely on are kept by the runner itself.
pub(crate) fn confine(launch: &Launch) {
    // Fails where this process leads a group already, as one that a shell started does.
    let _ = setsid();
    let _ = set_no_new_privs(true);
    let _ = setpriority_process(None, NICENESS);
    let score = if launch.oom_score_adj == 0 {
        OOM_SCORE
    } else {
        launch.oom_score_adj.clamp(-1000, 1000)
    };
    let _ = fs::write("/proc/self/oom_score_adj", score.to_string());
    let limit = |most| Rlimit {
        current: Some(most),
        maximum: Some(most),
    };
    let _ = setrlimit(Resource::Nofile, limit(MAX_DESCRIPTORS));
    let _ = setrlimit(Resource::Core, limit(0));
    for group in &launch.cgroups {
        enter(group);
    }
    if !launch.cpuset.is_empty() {
        let mut cpus = CpuSet::new();
        for cpu in &launch.cpuset {
            if *cpu < CpuSet::MAX_CPU {
                cpus.set(*cpu);
            }
        }
        let _ = sched_setaffinity(None, &cpus);
    }
}

fn enter(group: &Path) {
    let pid = getpid().as_raw_pid().to_string();
    let _ = fs::write(group.join("cgroup.procs"), pid);
}
