//! A PostgreSQL server for one test, which may stop and start it: not the one that all tests share.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use held_port::HeldPort;
use rustix::process::{Pid, Signal, geteuid, kill_process};

use crate::harness::PATIENCE;

/// How a server is stopped.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stop {
    /// Like a crash: nothing is completed.
    Immediate,
    /// Connections are closed, and transactions in progress are rolled back.
    Fast,
}

/// A running server, which ends when the value is dropped.
pub(crate) struct PostgresServer {
    programs: PathBuf,
    folder: tempfile::TempDir,
    port: HeldPort,
    /// The user that runs it: it refuses to run as root.
    user: Option<(u32, u32)>,
    server: Option<Child>,
}

impl PostgresServer {
    /// Returns none if PostgreSQL is not installed, and prints a message.
    pub(crate) fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            println!("SKIPPED: PostgreSQL is not installed, so no server of it was restarted");
            return None;
        };
        let user = geteuid().is_root().then(unprivileged);
        let folder = tempfile::tempdir().expect("a folder");
        if let Some((user, group)) = user {
            chown(folder.path(), Some(user), Some(group)).expect("a folder of its own");
        }
        let mut server = PostgresServer {
            programs,
            folder,
            port: HeldPort::new().expect("a port"),
            user,
            server: None,
        };
        let made = server
            .command("initdb")
            .args(["--username", "postgres", "--auth", "trust", "--no-sync"])
            .args(["--encoding", "UTF8", "--locale", "C.UTF-8", "--pgdata"])
            .arg(server.data())
            .output()
            .expect("initdb");
        assert!(made.status.success(), "{made:?}");
        server.begin();
        Some(server)
    }

    /// Starts it (again), and waits until it accepts connections.
    pub(crate) fn begin(&mut self) {
        let _ = std::fs::remove_file(self.state());
        let server = self
            .command("postgres")
            .arg("-D")
            .arg(self.data())
            .args(["-p", &self.port.address().port().to_string()])
            .args(["-c", "listen_addresses=127.0.0.1"])
            .args(["-c", "unix_socket_directories="])
            // The server fails, not the machine: the system keeps what the server wrote.
            .args(["-c", "fsync=off"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("postgres");
        self.server = Some(server);
        let begun = Instant::now();
        loop {
            let state = std::fs::read_to_string(self.state()).unwrap_or_default();
            if state.lines().any(|line| line.trim() == "ready") {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "no start of postgres");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn stop(&mut self, how: Stop) {
        let Some(mut server) = self.server.take() else {
            return;
        };
        let signal = match how {
            Stop::Immediate => Signal::QUIT,
            Stop::Fast => Signal::INT,
        };
        let pid = i32::try_from(server.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a process"), signal).expect("the signal");
        server.wait().expect("its end");
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres://postgres@{}/postgres", self.port.address())
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn state(&self) -> PathBuf {
        self.data().join("postmaster.pid")
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.current_dir(self.folder.path());
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        command
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.stop(Stop::Immediate);
    }
}

/// Returns the newest of Debian's versions.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let mut folders: Vec<(u32, PathBuf)> = versions
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            let folder = entry.path().join("bin");
            folder.join("initdb").exists().then_some((version, folder))
        })
        .collect();
    folders.sort();
    folders.pop().map(|(_, folder)| folder)
}

/// Returns the package's own user, or nobody.
fn unprivileged() -> (u32, u32) {
    let users = std::fs::read_to_string(Path::new("/etc/passwd")).expect("the users");
    let of = |name: &str| {
        let line = users
            .lines()
            .find(|line| line.split(':').next() == Some(name))?;
        let mut numbers = line.split(':').skip(2);
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    };
    of("postgres")
        .or_else(|| of("nobody"))
        .expect("a user that is not root")
}
