//! How the process of a service gives up its rights before it runs anything.
//!
//! [`leave_session`] comes first, before anything that can take time. [`settle`] follows, with all rights of the
//! supervisor; then everything that needs them is opened: folders, low ports, compiled code. [`confine`] comes last, and
//! the service runs confined.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use confinement::{Bound, Bounds, Confinement, FileAccess, Identity, Report, Sockets, SystemCalls};
use rustix::fs::Mode;
use rustix::process::{setsid, umask};
use rustix::thread::{CpuSet, sched_setaffinity};
use wasm_service::record::{Launch, Network};

/// A lower priority than the supervisor, which keeps 0.
const NICENESS: i32 = 5;
/// By default the process is killed before the supervisor when the machine's memory runs out.
const OOM_SCORE: i64 = 300;
/// The maximum number of descriptors of a process, including its service's sockets and files.
const MAX_DESCRIPTORS: u64 = 4096;
/// The maximum number of threads of a service's user: enough for two processes, since one takes over from another, each
/// with more than it ever has.
const MAX_THREADS: u64 = 128;
/// New files are accessible to the service and the services of its app.
const UMASK: u32 = 0o007;

/// The files of the system's resolver, which it reads each time: names and the servers to ask. Files that are not
/// public are protected by their mode.
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

/// Leaves the supervisor's session and its terminal, so that nothing that ends the session ends this process, such as
/// Ctrl-C or a closed terminal.
pub(crate) fn leave_session() {
    // Fails if this process already leads a group, such as one started by a shell.
    let _ = setsid();
}

/// Enters the control groups and moves to the processors that the engine has set. Returns which limits now apply to the
/// process.
pub(crate) fn settle(launch: &Launch) -> Report {
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
        // A set without any processor of this machine means all of them.
        let _ = sched_setaffinity(None, &cpus);
    }
    report
}

/// Takes away all rights that the service does not need. `settled` is the result of [`settle`], and `folder` the
/// container's.
///
/// # Errors
/// If the process cannot become the service's user, or if a wall is missing that the policy requires.
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
            "the policy requires restrictions that this system lacks: {}; set `require_confinement = false` in the policy to run without them",
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
            ends_with_parent: false,
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
        // The networks' tables, and the records of the containers in them.
        let parents = network.tables.iter().filter_map(|table| table.parent());
        access.read.extend(parents.map(wasm_service::record::near));
        access.read.extend(folder.parent().map(Path::to_owned));
    }
    if launch.network != Network::None {
        access.read.extend(RESOLVER.map(PathBuf::from));
    }
    access
}
