//! A NATS server for one test, on a port of the loopback, whose data folder is deleted with it.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use held_port::HeldPort;

use crate::harness::PATIENCE;

/// The path of the program, if it is not the system's.
const NATS: &str = "SUPERVISOR_TEST_NATS";
/// The user name that clients must know.
const USER: &str = "fleet";
const PASSWORD: &str = "a/secret@home";

/// Returns the path of the program, if this machine has it.
pub(super) fn program() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os(NATS) {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
    folders
        .map(|folder| folder.join("nats-server"))
        .find(|file| file.is_file())
}

/// A running server, which ends when the value is dropped.
pub(super) struct NatsServer {
    program: PathBuf,
    folder: tempfile::TempDir,
    port: HeldPort,
    server: Option<Child>,
}

impl NatsServer {
    pub(super) fn start(program: &Path) -> Self {
        let mut nats = NatsServer {
            program: program.to_owned(),
            folder: tempfile::tempdir().expect("a folder"),
            port: HeldPort::new().expect("a port"),
            server: None,
        };
        nats.begin();
        nats
    }

    /// Starts it (again), with its stored data.
    pub(super) fn begin(&mut self) {
        let port = self.port.address().port().to_string();
        let server = Command::new(&self.program)
            .args(["--user", USER, "--pass", PASSWORD])
            .args(["-a", "127.0.0.1", "-p", &port, "-js", "-sd"])
            .arg(self.folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("nats-server");
        self.server = Some(server);
        let begun = Instant::now();
        while TcpStream::connect(self.port.address()).is_err() {
            assert!(begun.elapsed() < PATIENCE, "no start of nats-server");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Ends it without notice.
    pub(super) fn kill(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ = server.kill();
            let _ = server.wait();
        }
    }

    pub(super) fn url(&self) -> String {
        format!("nats://{USER}:a%2Fsecret%40home@{}", self.port.address())
    }

    /// Opens a connection that does not belong to a replica.
    pub(super) async fn client(&self) -> async_nats::Client {
        async_nats::ConnectOptions::with_user_and_password(USER.to_owned(), PASSWORD.to_owned())
            .connect(self.port.address().to_string())
            .await
            .expect("the server")
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
    }
}
