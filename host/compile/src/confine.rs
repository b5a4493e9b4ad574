//! What this process gives up before it looks at a component.
//!
//! The component is hostile and the compiler is large. So the process that holds them together can
//! open nothing, start nothing and reach no one: it has its three pipes and a bounded amount of memory
//! and CPU time. All of it is done while the process has one thread, which is what makes the kernel's
//! calls (they change one thread) change the process.

use rustix::io::Result;
use rustix::process::{Resource, Rlimit, geteuid, setpriority_process, setrlimit};
use rustix::thread::{set_no_new_privs, set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use rustix::{fs::Gid, fs::Uid};

/// `nobody` and `nogroup`, on every distribution that matters here.
const NOBODY: u32 = 65534;
/// Standard input, output and error are open; nothing else ever is.
const OPEN_FILES: u64 = 3;
/// A compilation may wait for whatever the device does for its users.
const NICE: i32 = 10;
/// Where memory runs out, the kernel ends a compilation before anything else of the device: it is tried again.
const OOM_SCORE: &str = "800";
/// CPU time between the signal that says that there is no more and the one that ends, in seconds: the first one tells
/// the supervisor which limit it was.
const LAST_WORDS: u64 = 2;

/// Becomes a user without rights, for good.
pub(crate) fn give_up_privileges() -> Result<()> {
    // Before the user changes: the file is root's from then on. Where there is no such file nobody counts.
    let _ = std::fs::write("/proc/self/oom_score_adj", OOM_SCORE);
    set_no_new_privs(true)?;
    if geteuid().is_root() {
        let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
        // Groups first: without the user's rights they could no longer be changed.
        set_thread_groups(&[])?;
        set_thread_res_gid(group, group, group)?;
        set_thread_res_uid(user, user, user)?;
    }
    // Being refused this is no danger to anyone.
    let _ = setpriority_process(None, NICE);
    Ok(())
}

/// Bounds address space (bytes) and CPU time (seconds), and forbids files, sockets, processes, threads
/// and core dumps.
pub(crate) fn limit(memory: u64, cpu: u64) -> Result<()> {
    for (resource, current, maximum) in [
        (Resource::As, memory, memory),
        (Resource::Cpu, cpu, cpu.saturating_add(LAST_WORDS)),
        (Resource::Core, 0, 0),
        (Resource::Fsize, 0, 0),
        (Resource::Nproc, 0, 0),
        (Resource::Nofile, OPEN_FILES, OPEN_FILES),
    ] {
        let (current, maximum) = (Some(current), Some(maximum));
        setrlimit(resource, Rlimit { current, maximum })?;
    }
    Ok(())
}
