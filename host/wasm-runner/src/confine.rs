//! What the process of a service gives up before it runs anything.
//!
//! [`settle`] comes first, with all rights of the supervisor; then whatever takes them is opened: folders, low ports,
//! compiled code. [`confine`] comes last, and the service runs behind it.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use confinement::{Bound, Bounds, Confinement, FileAccess, Identity, Report, Sockets, SystemCalls};
use rustix::fs::Mode;
use rustix::process::{setsid, umask};
use rustix::thread::{CpuSet, sched_setaffinity};
use wasm_service::record::{Launch, Network};

/// Behind the supervisor, which keeps 0.
const NICENESS: i32 = 5;
/// Ended before the supervisor when the machine's memory runs out, where nothing else is configured.
const OOM_SCORE: i64 = 300;
/// Descriptors of a process, its service's sockets and files among them.
const MAX_DESCRIPTORS: u64 = 4096;
/// Threads of a service's user: those of two processes, since one takes over from another, each with more than it ever
/// has.
const MAX_THREADS: u64 = 128;
/// New files are for the service and the services of its app.
const UMASK: u32 = 0o007;

/// What the system's resolver reads, each time anew: names and where to ask for them. What of it is not for everybody is
/// kept by its mode.
const RESOLVER: [&str; 8] = [
    "/etc",
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/run/NetworkManager",
    "/run/resolvconf",
    "/run/systemd/resolve",
];

/// Leaves the supervisor's session, so that nothing that ends it ends this process, and goes where the engine wants it:
/// into its control groups, onto its processors. Answers what of it bounds the process now.
pub(crate) fn settle(launch: &Launch) -> Report {
    // Fails where this process leads a group already, as one that a shell started does.
    let _ = setsid();
    let mut report = Report::default();
    for group in &launch.cgroups {
        let entered = group.enter(std::process::id());
        for wall in &group.walls {
            report.note(*wall, entered.clone());
        }
    }
    if !launch.cpuset.is_empty() {
        let mut cpus = CpuSet::new();
        for cpu in &launch.cpuset {
            if *cpu < CpuSet::MAX_CPU {
                cpus.set(*cpu);
            }
        }
        // A set without a processor of this machine means all of them.
        let _ = sched_setaffinity(None, &cpus);
    }
    report
}

/// Takes away all that the service does not need. `settled` is what [`settle`] answered, and `folder` the container's.
///
/// # Errors
/// Where the process cannot become the service's user, and where a wall is missing that the policy requires.
pub(crate) fn confine(launch: &Launch, folder: &Path, settled: Report) -> Result<Report> {
    umask(Mode::from_raw_mode(UMASK));
    let mut report = confinement(launch, folder)
        .apply()
        .context("failed to confine the service's process")?;
    report.merge(settled);
    for missing in &launch.missing_walls {
        report.overrule(missing.clone());
    }
    if launch.requires_confinement && !report.missing.is_empty() {
        bail!(
            "the policy requires walls that are missing here: {}; set `require_confinement = false` in the policy to run without them",
            report.missing_in_words()
        );
    }
    Ok(report)
}

fn confinement(launch: &Launch, folder: &Path) -> Confinement {
    let mut limits = vec![Bound::Descriptors(MAX_DESCRIPTORS), Bound::CoreDump(0)];
    if launch.user.is_some() {
        limits.push(Bound::Processes(MAX_THREADS));
    }
    let oom_score = match launch.oom_score_adj {
        0 => OOM_SCORE,
        score => score.clamp(-1000, 1000),
    };
    Confinement {
        bounds: Bounds {
            limits,
            niceness: Some(NICENESS),
            oom_score: Some(oom_score),
        },
        identity: launch.user.map(|user| Identity {
            uid: user.uid,
            gid: user.app_gid,
            groups: vec![user.uid],
        }),
        files: Some(files(launch, folder)),
        system_calls: Some(SystemCalls {
            threads: true,
            files: true,
            page_map: false,
            sockets: match launch.network {
                Network::None => Sockets::None,
                Network::Host | Network::Own(_) => Sockets::Internet,
            },
        }),
    }
}

fn files(launch: &Launch, folder: &Path) -> FileAccess {
    let mut access = FileAccess {
        read: Vec::new(),
        write: vec![folder.to_owned(), PathBuf::from("/dev/null")],
    };
    for folder in &launch.folders {
        let list = if folder.read_only {
            &mut access.read
        } else {
            &mut access.write
        };
        list.push(folder.host.clone());
    }
    if let Network::Own(network) = &launch.network {
        // The networks' tables, and what the containers that they name say of themselves.
        let parents = network.tables.iter().filter_map(|table| table.parent());
        access.read.extend(parents.map(wasm_service::record::near));
        access.read.extend(folder.parent().map(Path::to_owned));
    }
    if launch.network != Network::None {
        access.read.extend(RESOLVER.map(PathBuf::from));
    }
    access
}
