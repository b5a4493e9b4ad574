//! A PostgreSQL server for one run of the tests, separate from those of the machine.
//!
//! `cargo xtask test` starts one; `cargo xtask postgres-for-tests` starts one for a developer's own runs. It is created
//! from Debian's packages in a temporary folder, listens only on a port of the loopback interface, and never syncs to
//! the disk. It ends with its owner: when it is dropped, on Ctrl-C, or, after a kill, when the next one starts.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use held_port::HeldPort;
use rustix::process::Signal;

use crate::interrupted::clean_up_when_interrupted;
use crate::owned_folder;
use crate::packages::{RequiredPackage, install_if_debian_root, program};
use crate::processes::{self, read_pid};

/// The package of its programs, and one of its files that usually shows whether it is installed; [`programs`] knows for
/// sure.
pub(crate) const PACKAGE: &[RequiredPackage] = &[("/usr/share/doc/postgresql", "postgresql")];

/// The variable that the tests of the database read: the address of a server whose user may create databases.
pub(crate) const POSTGRES: &str = "SUPERVISOR_TEST_POSTGRES";
/// The prefix of our folders in the temporary folder.
const FOLDER_PREFIX: &str = "supervisor-postgres-";
/// The memory for the databases. Each test has its own ones, with some hundred files each: creating and removing files
/// on a disk took a fifth of the processors' time. A database has some ten MB, and is deleted with its test.
const ROOM: u64 = 2 << 30;
/// The time limit from the start of the server until it accepts connections.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Ends a server without waiting for its clients; SIGTERM would wait.
const STOP_SIGNAL: Signal = Signal::INT;
/// The time limit from that signal to its end.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// A running server. Dropping this value stops it and removes its data.
pub(crate) struct PrivatePostgres {
    folder: PathBuf,
    port: HeldPort,
    server: Child,
}

impl PrivatePostgres {
    /// Creates a server and waits until it accepts connections.
    ///
    /// # Errors
    /// What is missing, if this machine cannot run one.
    pub(crate) fn start() -> Result<Self> {
        if programs().is_none() {
            install_if_debian_root(&["postgresql"], "the tests of the database")?;
        }
        let programs = programs().context("not installed: postgresql")?;
        for folder in owned_folder::find_without_owner(FOLDER_PREFIX) {
            end_and_remove(&folder);
        }
        let folder = owned_folder::create_in_memory(FOLDER_PREFIX, ROOM)
            .context("failed to create a folder for the private PostgreSQL server")?;
        match Self::start_in(&programs, &folder) {
            Ok(server) => Ok(server),
            Err(error) => {
                end_and_remove(&folder);
                Err(error)
            }
        }
    }

    fn start_in(programs: &Path, folder: &Path) -> Result<Self> {
        let cleaned = folder.to_owned();
        clean_up_when_interrupted(move || end_and_remove(&cleaned));
        let user = ServerUser::find()?;
        user.give(folder)?;

        let data = folder.join("data");
        let mut make = user.command(&programs.join("initdb"), folder);
        make.args(["--username", "postgres", "--auth", "trust", "--no-sync"])
            .args(["--encoding", "UTF8", "--locale", "C.UTF-8", "--pgdata"])
            .arg(&data);
        let made = make.output().context("failed to start `initdb`")?;
        if !made.status.success() {
            bail!(
                "`initdb` failed: {}",
                String::from_utf8_lossy(&made.stderr).trim()
            );
        }

        let port = HeldPort::new()?;
        let log = fs::File::create(folder.join("log"))?;
        let mut serve = user.command(&programs.join("postgres"), folder);
        serve
            .arg("-D")
            .arg(&data)
            .args(["-p", &port.address().port().to_string()])
            .args(["-c", "listen_addresses=127.0.0.1"])
            .args(["-c", "unix_socket_directories="])
            .args(["-c", "max_connections=300"])
            // Nothing here has to survive a power failure.
            .args(["-c", "fsync=off"])
            .args(["-c", "full_page_writes=off"])
            .args(["-c", "synchronous_commit=off"])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let server = serve.spawn().context("failed to start `postgres`")?;
        let mut server = PrivatePostgres {
            folder: folder.to_owned(),
            port,
            server,
        };
        server.wait_until_ready()?;
        Ok(server)
    }

    /// Returns the value of `SUPERVISOR_TEST_POSTGRES`.
    pub(crate) fn url(&self) -> String {
        format!("postgres://postgres@{}/postgres", self.port.address())
    }

    /// The server writes its state into a file; the last line shows when it is ready.
    fn wait_until_ready(&mut self) -> Result<()> {
        let state = self.folder.join("data/postmaster.pid");
        let is_ready = || {
            let state = fs::read_to_string(&state).unwrap_or_default();
            state.lines().any(|line| line.trim() == "ready")
        };
        let log = self.folder.join("log");
        processes::wait_until("postgres", &mut self.server, &log, START_TIMEOUT, is_ready)
    }
}

impl Drop for PrivatePostgres {
    fn drop(&mut self) {
        if let Some(pid) = processes::pid(self.server.id()) {
            processes::end(pid, STOP_SIGNAL, STOP_TIMEOUT);
        }
        // Reaps it, so that it no longer counts as running.
        let _ = self.server.wait();
        end_and_remove(&self.folder);
    }
}

/// The user that runs the server, which refuses to run as root.
enum ServerUser {
    /// Our own user, which is not root.
    Us,
    /// The package's own user.
    Other { user: u32, group: u32 },
}

impl ServerUser {
    fn find() -> Result<Self> {
        if !rustix::process::geteuid().is_root() {
            return Ok(ServerUser::Us);
        }
        let users = fs::read_to_string("/etc/passwd")?;
        let entry = |name: &str| {
            let mut fields = users
                .lines()
                .map(|line| line.split(':'))
                .find(|fields| fields.clone().next() == Some(name))?
                .skip(2);
            let user = fields.next()?.parse().ok()?;
            let group = fields.next()?.parse().ok()?;
            Some(ServerUser::Other { user, group })
        };
        entry("postgres")
            .or_else(|| entry("nobody"))
            .context("there is no user other than root to run the PostgreSQL server as")
    }

    fn give(&self, folder: &Path) -> Result<()> {
        if let ServerUser::Other { user, group } = self {
            chown(folder, Some(*user), Some(*group))?;
        }
        Ok(())
    }

    /// Detached from the terminal: Ctrl-C reaches only us, and we stop the program properly.
    fn command(&self, program: &Path, folder: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(folder).process_group(0);
        if let ServerUser::Other { user, group } = self {
            command.uid(*user).gid(*group);
        }
        command
    }
}

/// Returns the folder with `initdb` and `postgres`: Debian has one for each version, and the newest is used.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let newest = versions
        .flatten()
        .filter_map(|entry| {
            let version: u32 = entry.file_name().to_str()?.parse().ok()?;
            let folder = entry.path().join("bin");
            folder.join("initdb").exists().then_some((version, folder))
        })
        .max()
        .map(|(_, folder)| folder);
    newest.or_else(|| program("initdb")?.parent().map(Path::to_owned))
}

fn end_and_remove(folder: &Path) {
    let running = read_pid(&folder.join("data/postmaster.pid"));
    if let Some(pid) = running
        && processes::names(pid, folder)
    {
        processes::end(pid, STOP_SIGNAL, STOP_TIMEOUT);
    }
    owned_folder::remove(folder);
}

/// `cargo xtask postgres-for-tests`: stays in the foreground until Ctrl-C.
pub(crate) fn run_in_foreground() -> Result<()> {
    let server = PrivatePostgres::start()?;
    println!("export {POSTGRES}={}", server.url());
    println!("# Ctrl-C stops it");
    loop {
        std::thread::park();
    }
}
