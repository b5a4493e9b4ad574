//! The tool, which contains the runtime, as a process next to the test.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};
use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStdin, Command};

use crate::control::{Setup, StartOutcome};

/// The name of the program.
const NAME: &str = "supervisor-plugin";

/// The running tool. When this is dropped, it stops and the device's files are removed.
pub(crate) struct Tool {
    /// The root folder of the device's files.
    pub(crate) root: PathBuf,
    socket: PathBuf,
    _child: Child,
    /// The tool stops when this is closed.
    _input: ChildStdin,
    _folder: TempDir,
}

/// Finds the tool.
pub(crate) fn find() -> Result<PathBuf> {
    if let Some(named) = std::env::var_os("SUPERVISOR_PLUGIN") {
        return Ok(named.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|folder| folder.join(NAME));
    let this = std::env::current_exe().context("no path of this test's program")?;
    let built = this
        .ancestors()
        .map(|folder| folder.join("dist/bin").join(NAME));
    // A repository's own build takes precedence over an installed one: it has the same version.
    let mut programs = built.chain(on_path);
    programs.find(|program| program.is_file()).context(
        "the tool `supervisor-plugin` is missing, which has the runtime of plugins: install it with \
         `cargo install --locked --path sdk/cli` in the supervisor's repository, or name it in SUPERVISOR_PLUGIN",
    )
}

/// Starts the tool with a device.
pub(crate) async fn start(program: &Path, setup: &Setup) -> Result<Tool> {
    let shown = program.display();
    let folder = tempfile::tempdir().context("failed to create a temporary folder")?;
    let socket = folder.path().join("socket");
    let mut child = Command::new(program)
        .arg("harness")
        .arg(&socket)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("cannot start `{shown}`"))?;
    let ends = (child.stdin.take(), child.stdout.take());
    let (Some(mut input), Some(output)) = ends else {
        bail!("failed to communicate with `{shown}`");
    };
    let mut line = serde_json::to_string(setup).context("the device cannot be written as JSON")?;
    line.push('\n');
    // A tool without the command `harness` has stopped by now: its own message is more useful.
    let _ = input.write_all(line.as_bytes()).await;
    let mut answer = String::new();
    let mut output = BufReader::new(output);
    output.read_line(&mut answer).await?;
    let started = serde_json::from_str(&answer).with_context(|| {
        format!(
            "`{shown}` does not answer as this version of `supervisor-testing` expects; update both"
        )
    })?;
    match started {
        StartOutcome::Ready { root } => Ok(Tool {
            root,
            socket,
            _child: child,
            _input: input,
            _folder: folder,
        }),
        StartOutcome::Failed(why) => bail!("{why}"),
    }
}

impl Tool {
    /// Sends a request on its own connection.
    ///
    /// # Errors
    /// If there is no answer.
    pub(crate) async fn send<B>(&self, request: Request<B>) -> Result<Response<Incoming>>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let stream = UnixStream::connect(&self.socket)
            .await
            .context("the tool has ended")?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        sender
            .send_request(request)
            .await
            .context("the tool does not answer")
    }
}
