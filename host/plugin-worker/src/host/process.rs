//! The process of a worker.

use std::io::{Error, Result};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use confinement::Report;
use plugin_protocol::FolderView;
use tokio::net::UnixStream;
use tokio::process::{Child, Command};

use super::WorkerConfig;
use super::session::Session;
use crate::notes;
use crate::wire::{Question, Reply, VERSION};

/// The user of workers without folders where the supervisor is root: nobody else's on this machine, right above those of
/// services.
pub(super) const USER: u32 = 1_900_065_536;
/// How long a worker may take until it greets.
const GREETING: Duration = Duration::from_secs(30);

/// A process that was started and has greeted.
pub(super) struct Process {
    pub(super) child: Child,
    pub(super) session: Arc<Session>,
    pub(super) host_calls: UnixStream,
    pub(super) walls: Report,
}

/// Starts one.
pub(super) async fn start(
    config: &WorkerConfig,
    folders: &[FolderView],
    generation: u64,
) -> Result<Process> {
    let state = folder_states(folders.to_vec()).await;
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
    // What it would print is no plugin's word and no host's: it says what it has to say on its socket.
    let mut child = command
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(inherited))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| {
            let program = config.program.display();
            Error::new(error.kind(), format!("cannot run `{program}`: {error}"))
        })?;
    let (own, others) = std::os::unix::net::UnixStream::pair()?;
    own.set_nonblocking(true)?;
    let host_calls = UnixStream::from_std(own)?;
    let session = Arc::new(Session::new(generation, notes, state));
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
        Some(Reply::Hello { version, walls }) if version == VERSION => Ok(Process {
            child,
            session,
            host_calls,
            walls,
        }),
        Some(Reply::Refused(reason)) => Err(Error::other(reason)),
        Some(_) => Err(Error::other("it is no worker of this version")),
        None => {
            let status = child.wait().await?;
            Err(Error::other(format!("it ended at once ({status})")))
        }
    }
}

/// Who a worker becomes, as user and group; `None` where it stays who the supervisor is. One with folders is whose they
/// are, where that is one user, since what is written there is to be theirs.
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

/// Which folder is in a place: one that is mounted or made there later is another.
pub(super) type FolderState = Option<(u64, u64)>;

/// What is in these places now.
pub(super) async fn folder_states(folders: Vec<FolderView>) -> Vec<FolderState> {
    let look = move || {
        let folders = folders.iter();
        folders
            .map(|folder| {
                let about = std::fs::metadata(&folder.host).ok()?;
                Some((about.dev(), about.ino()))
            })
            .collect()
    };
    // Where the disk is another machine's it takes its time.
    tokio::task::spawn_blocking(look).await.unwrap_or_default()
}
