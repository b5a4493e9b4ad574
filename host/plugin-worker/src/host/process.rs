//! The process of a worker.

use std::io::{Error, Result};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use confinement::{Report, Wall};
use plugin_protocol::FolderView;
use tokio::process::{Child, Command};

use super::WorkerConfig;
use super::folders::folder_states;
use super::groups::ProcessGroups;
use super::session::Session;
use crate::wire::{Question, Reply, VERSION};
use crate::{notes, socket};

/// The user of workers without folders if the supervisor is root: not used for anything else on this machine, and right
/// above those of services.
pub(super) const USER: u32 = 1_900_065_536;
/// How long a worker may take to greet.
const GREETING: Duration = Duration::from_secs(30);

/// A process that was started and has greeted.
pub(super) struct Process {
    pub(super) child: Child,
    pub(super) session: Arc<Session>,
    pub(super) host_calls: OwnedFd,
    pub(super) walls: Report,
    /// The memory of its instances at its start, in bytes.
    pub(super) memory: usize,
    /// Dropped after the child, which is in them.
    pub(super) groups: Option<Arc<ProcessGroups>>,
}

/// Starts a process.
pub(super) async fn start(
    config: &WorkerConfig,
    folders: &[FolderView],
    generation: u64,
) -> Result<Process> {
    let state = folder_states(folders.to_vec()).await;
    let state = state.map_err(Error::other)?;
    let (notes, inherited) = notes::pair()?;
    let mut command = Command::new(&config.program);
    command
        .arg("plugins")
        .args(["--slots", &config.slots.to_string()])
        .args(["--memory", &config.memory.to_string()]);
    for folder in folders {
        let right = if folder.write { "--write" } else { "--read" };
        command.arg(right).arg(&folder.host);
    }
    if let Some((user, group)) = identity(folders) {
        command.args(["--user", &user.to_string()]);
        command.args(["--group", &group.to_string()]);
    }
    // Its output would come neither from a plugin nor from the host: it reports everything on its socket.
    let mut child = command
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(inherited))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // A terminal sends Ctrl-C to the supervisor's whole group. A worker that ends before the supervisor does would
        // be reported as lost, and replaced.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| {
            let program = config.program.display();
            Error::new(error.kind(), format!("cannot run `{program}`: {error}"))
        })?;
    // Before its greeting, it has no plugin data.
    let (groups, by_groups) = enter_groups(&child, config, generation).await;
    let (host_calls, others) = socket::pair()?;
    let weak_groups = groups.as_ref().map(Arc::downgrade).unwrap_or_default();
    let session = Arc::new(Session::new(generation, notes, state, weak_groups));
    let greeting = Question::Hello {
        version: VERSION.to_owned(),
    };
    let greeted = session.ask(&greeting, Some(others.as_fd()));
    let reply = match tokio::time::timeout(GREETING, greeted).await {
        Ok(reply) => reply?,
        Err(_) => {
            let seconds = GREETING.as_secs();
            return Err(Error::other(format!("it did not greet within {seconds} s")));
        }
    };
    match reply {
        Some(Reply::Hello { version, mut walls }) if version == VERSION => {
            walls.merge(by_groups);
            Ok(Process {
                child,
                session,
                host_calls,
                walls,
                memory: config.memory,
                groups,
            })
        }
        Some(Reply::Refused(reason)) => Err(Error::other(reason)),
        Some(_) => Err(Error::other("it is not a worker of this version")),
        None => {
            let status = child.wait().await?;
            Err(Error::other(format!("it ended at once ({status})")))
        }
    }
}

/// Puts a process into its own control groups; if these limit nothing, the report says why.
async fn enter_groups(
    child: &Child,
    config: &WorkerConfig,
    generation: u64,
) -> (Option<Arc<ProcessGroups>>, Report) {
    let (below, memory) = (config.control_groups.clone(), config.memory);
    // A process that has already ended has no number, and does not greet.
    let Some(process) = child.id() else {
        return (None, Report::default());
    };
    let enter = move || ProcessGroups::around(process, &below, generation, memory);
    match tokio::task::spawn_blocking(enter).await {
        Ok((groups, report)) => (Some(Arc::new(groups)), report),
        Err(error) => {
            let mut report = Report::default();
            for wall in [Wall::Memory, Wall::Processes] {
                report.record_missing(wall, &error);
            }
            (None, report)
        }
    }
}

/// Returns the user and group that a worker changes to; `None` if it keeps the supervisor's. A worker with folders runs
/// as the owner of the folders if that is a single user, so that this user owns the files written there.
fn identity(folders: &[FolderView]) -> Option<(u32, u32)> {
    let (user, group) = match folders {
        [] => (USER, USER),
        folders => {
            let owners = folders.iter().filter_map(|folder| {
                let about = std::fs::metadata(&folder.host).ok()?;
                Some((about.uid(), about.gid()))
            });
            let mut owners: Vec<_> = owners.collect();
            owners.dedup();
            match owners[..] {
                [owner] => owner,
                _ => return None,
            }
        }
    };
    let can = user != 0 && confinement::can_become(user, 1).is_ok();
    can.then_some((user, group))
}
