//! The host's journal, through the host's own journal command.
//!
//! [`JournalShare::read`] starts one process for each reader and passes on its output. The process receives an argument
//! list and no shell is involved. Each value is part of its own option, so no value can become another option. The
//! process ends when its reader is dropped, if not earlier.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::Stdio;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep, timeout_at};
use tokio_util::io::poll_read_buf;

/// How many readers may run at a time; half of them for one client.
const AT_ONCE: usize = 32;
/// How many of them may follow: the others are sure to end. Half for one client, too.
const FOLLOWING: usize = 24;
/// How long a reader waits for its turn.
const TURN_WITHIN: Duration = Duration::from_secs(5);
/// How long a reader that does not follow may take, including the slowness of its consumer.
const DONE_WITHIN: Duration = Duration::from_secs(30 * 60);
/// The longest value of an option, in bytes.
const LONGEST: usize = 1024;
/// How much is read at a time, in bytes.
const PIECE: usize = 16 << 10;
/// How much of the command's error messages is kept, in bytes.
const COMPLAINT: u64 = 4 << 10;

/// The variables of our environment that the command receives: those that affect how times and names are printed.
const ENVIRONMENT: [&str; 5] = ["PATH", "TZ", "LANG", "LC_ALL", "LC_TIME"];

/// The host's journal, which clients read through their shares of it. Clones share the limits on readers.
#[derive(Debug, Clone)]
pub struct Journal {
    shared: Arc<JournalState>,
}

#[derive(Debug)]
struct JournalState {
    program: PathBuf,
    host_root: PathBuf,
    turns: ReaderTurns,
}

/// What one client of the journal reads it with: it has at most half of the readers, so that the other half is left for
/// others. Clones share it.
#[derive(Debug, Clone)]
pub struct JournalShare {
    journal: Journal,
    turns: Arc<ReaderTurns>,
}

/// Turns for readers, of all clients or of one.
#[derive(Debug)]
struct ReaderTurns {
    readers: TurnsOfKind,
    following: TurnsOfKind,
}

/// The turns of all readers, or of those that follow.
#[derive(Debug)]
struct TurnsOfKind {
    free: Arc<Semaphore>,
    limit: ReaderLimit,
}

/// A number of readers at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, derive_more::Display)]
#[display("{most} {readers}")]
pub struct ReaderLimit {
    most: usize,
    readers: &'static str,
}

/// What to print; options that are `None` are left to the command.
///
/// `plugin_protocol` and the SDK have the same list for plugins: this crate knows nothing of plugins, and the process
/// that runs them contains nothing of this crate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JournalOptions {
    /// Whether every field and character is shown, of whatever length (`--all`).
    pub all: bool,
    /// Whether new entries are printed as they come, without an end (`--follow`).
    pub follow: bool,
    /// Only entries of this unit (`--unit`).
    pub unit: Option<String>,
    /// The syslog identifier, which for a container is its id.
    pub identifier: Option<String>,
    /// Only this many of the newest entries (`--lines`); a number beyond the range of `i32` is reduced to its maximum.
    pub count: Option<u64>,
    /// A time in a form that the command accepts, for example `2026-01-31 12:00:00` or `yesterday`.
    pub since: Option<String>,
    /// The time of the newest entry, in the form of `since`.
    pub until: Option<String>,
    /// The output format, for example `short` or `json`.
    pub format: Option<String>,
}

/// Why the journal is not read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// An option has a value that is not passed to the command.
    #[error("`{option}` of the journal {reason}")]
    Invalid {
        /// The command's long name of the option: `lines` is the count, `output` the format.
        option: &'static str,
        /// What is wrong with its value, as the end of a sentence.
        reason: &'static str,
    },
    /// The maximum number of readers is running, and none ended within 5 s.
    #[error("the journal has {0}, the maximum for all clients together")]
    Busy(ReaderLimit),
    /// The client has the maximum number of readers for one, and none ended within 5 s.
    #[error("the client has {0} of the journal, the maximum for one client")]
    ShareBusy(ReaderLimit),
    /// The command does not exist, or the system starts no more processes.
    #[error("the journal command `{}` cannot be started", program.display())]
    Start {
        /// The command, as it was configured.
        program: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
}

impl Journal {
    /// The journal of the host whose root folder is at `host_root`, read with `program`. If that is a bare name, it is
    /// looked up in the search path.
    #[must_use]
    pub fn new(program: impl Into<PathBuf>, host_root: impl Into<PathBuf>) -> Self {
        Journal {
            shared: Arc::new(JournalState {
                program: program.into(),
                host_root: host_root.into(),
                turns: ReaderTurns::new(AT_ONCE, FOLLOWING),
            }),
        }
    }

    /// Creates the share of a client.
    #[must_use]
    pub fn share(&self) -> JournalShare {
        JournalShare {
            journal: self.clone(),
            turns: Arc::new(ReaderTurns::new(AT_ONCE / 2, FOLLOWING / 2)),
        }
    }

    fn command(&self, arguments: Vec<OsString>) -> Command {
        let mut command = Command::new(&self.shared.program);
        command
            .args(arguments)
            .env_clear()
            .envs(ENVIRONMENT.iter().filter_map(|name| {
                let value = std::env::var_os(name)?;
                Some((*name, value))
            }))
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A terminal sends Ctrl-C to the supervisor's whole group; the supervisor ends its readers itself.
            .process_group(0)
            .kill_on_drop(true);
        if let Some(zone) = zone(&self.shared.host_root) {
            let mut value = OsString::from(":");
            value.push(zone);
            command.env("TZ", value);
        }
        command
    }
}

impl JournalShare {
    /// Starts the command. Whether it accepts its options is not known yet: a command that does not prints nothing. If it
    /// writes error messages, `report` is called with them, on one line, when it ends: how often that happens depends on
    /// whoever chooses the options, so the caller decides whether to log it.
    ///
    /// # Errors
    /// [`JournalError::Invalid`] for an invalid value, [`JournalError::Busy`] or [`JournalError::ShareBusy`] if no
    /// reader ends within 5 s, [`JournalError::Start`] if the command does not exist.
    pub async fn read(
        &self,
        options: &JournalOptions,
        report: impl FnOnce(&str) + Send + 'static,
    ) -> Result<JournalReader, JournalError> {
        let journal = &self.journal;
        let arguments = arguments(&journal.shared.host_root, options)?;
        let deadline = Instant::now() + TURN_WITHIN;
        // Those of the client come first: its further readers wait in nobody else's way.
        let own = self.turns.wait(options.follow, deadline).await;
        let mut turns = own.map_err(JournalError::ShareBusy)?;
        let of_all = journal.shared.turns.wait(options.follow, deadline).await;
        turns.extend(of_all.map_err(JournalError::Busy)?);
        let mut child =
            journal
                .command(arguments)
                .spawn()
                .map_err(|source| JournalError::Start {
                    program: journal.shared.program.clone(),
                    source,
                })?;
        if let Some(errors) = child.stderr.take() {
            tokio::spawn(async move {
                let complaint = complaint(errors).await;
                if !complaint.is_empty() {
                    report(&complaint);
                }
            });
        }
        Ok(JournalReader {
            output: child.stdout.take(),
            buffer: BytesMut::new(),
            // A reader that follows has no end and no deadline.
            deadline: (!options.follow).then(|| Box::pin(sleep(DONE_WITHIN))),
            child,
            _turns: turns,
        })
    }
}

impl ReaderTurns {
    fn new(readers: usize, following: usize) -> ReaderTurns {
        ReaderTurns {
            readers: TurnsOfKind::new(readers, "readers"),
            following: TurnsOfKind::new(following, "following readers"),
        }
    }

    /// Waits for the turn of a reader; returns the limit that is reached if it does not come.
    async fn wait(
        &self,
        follow: bool,
        deadline: Instant,
    ) -> Result<Vec<OwnedSemaphorePermit>, ReaderLimit> {
        let mut turns = Vec::new();
        if follow {
            turns.push(self.following.wait(deadline).await?);
        }
        turns.push(self.readers.wait(deadline).await?);
        Ok(turns)
    }
}

impl TurnsOfKind {
    fn new(most: usize, readers: &'static str) -> TurnsOfKind {
        TurnsOfKind {
            free: Arc::new(Semaphore::new(most)),
            limit: ReaderLimit { most, readers },
        }
    }

    async fn wait(&self, deadline: Instant) -> Result<OwnedSemaphorePermit, ReaderLimit> {
        let turn = Arc::clone(&self.free).acquire_owned();
        match timeout_at(deadline, turn).await {
            Ok(Ok(turn)) => Ok(turn),
            // The semaphores are never closed.
            Ok(Err(_)) | Err(_) => Err(self.limit),
        }
    }
}

/// Returns the file of the host's time zone if the host's root is not ours: times are printed in the host's zone.
fn zone(host_root: &Path) -> Option<PathBuf> {
    if is_own_root(host_root) {
        return None;
    }
    let link = host_root.join("etc/localtime");
    // A link is resolved as on the host.
    let file = match std::fs::read_link(&link) {
        Ok(target) => match target.strip_prefix("/") {
            Ok(below) => host_root.join(below),
            Err(_) => host_root.join("etc").join(target),
        },
        Err(_) => link,
    };
    file.is_file().then_some(file)
}

/// Whether the host's root folder is ours: then the command needs no extra options.
fn is_own_root(host_root: &Path) -> bool {
    host_root == Path::new("/")
}

/// Returns the command's arguments, in the order of the device API (docs/spec/device.md#journal-logs).
fn arguments(host_root: &Path, options: &JournalOptions) -> Result<Vec<OsString>, JournalError> {
    let mut arguments = Vec::new();
    if !is_own_root(host_root) {
        let mut root = OsString::from("--root=");
        root.push(host_root);
        arguments.push(root);
    }
    if options.all {
        arguments.push("--all".into());
    }
    if options.follow {
        arguments.push("--follow".into());
    }
    // The command reads a C `int`; no journal has more entries than that.
    let count = options
        .count
        .map(|count| count.min(i32::MAX.unsigned_abs().into()).to_string());
    for (option, value) in [
        ("unit", &options.unit),
        ("identifier", &options.identifier),
        ("lines", &count),
        ("since", &options.since),
        ("until", &options.until),
        ("output", &options.format),
    ] {
        if let Some(value) = value {
            let invalid = |reason| JournalError::Invalid { option, reason };
            // A time may be relative to now (`-1h`). As part of its own option no value can become another one.
            let is_time = matches!(option, "since" | "until");
            let counts_back =
                |rest: &str| is_time && rest.starts_with(|c: char| c.is_ascii_digit());
            if value
                .strip_prefix('-')
                .is_some_and(|rest| !counts_back(rest))
            {
                return Err(invalid("begins with `-`"));
            }
            if value.len() > LONGEST {
                return Err(invalid("is longer than 1024 bytes"));
            }
            if value.contains('\0') {
                return Err(invalid("contains a zero byte"));
            }
            arguments.push(format!("--{option}={value}").into());
        }
    }
    Ok(arguments)
}

/// Returns the messages of a failing command, on one line. Reads all of them, so the command is never blocked.
async fn complaint(mut errors: impl AsyncRead + Unpin) -> String {
    let mut beginning = Vec::new();
    let _ = (&mut errors)
        .take(COMPLAINT)
        .read_to_end(&mut beginning)
        .await;
    let _ = tokio::io::copy(&mut errors, &mut tokio::io::sink()).await;
    let lines: Vec<String> = String::from_utf8_lossy(&beginning)
        .lines()
        .map(|line| line.trim().escape_debug().to_string())
        .collect();
    lines.join("; ")
}

/// The output of the journal command. Nothing is read ahead of the consumer; dropping this ends the command.
#[derive(Debug)]
pub struct JournalReader {
    /// `None` once it has ended.
    output: Option<ChildStdout>,
    buffer: BytesMut,
    deadline: Option<Pin<Box<Sleep>>>,
    child: Child,
    _turns: Vec<OwnedSemaphorePermit>,
}

impl JournalReader {
    /// Returns the id of the command's process, while it runs.
    #[must_use]
    pub fn process_id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Returns the next piece, never an empty one; `None` at the end.
    ///
    /// # Errors
    /// If the command takes longer than its 30 minutes, or its output cannot be read.
    pub fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Option<Bytes>>> {
        if let Some(deadline) = &mut self.deadline
            && deadline.as_mut().poll(context).is_ready()
        {
            self.output = None;
            self.deadline = None;
            // The process is reaped when this is dropped.
            let _ = self.child.start_kill();
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        let Some(output) = &mut self.output else {
            return Poll::Ready(Ok(None));
        };
        self.buffer.reserve(PIECE);
        let count = ready!(poll_read_buf(Pin::new(output), context, &mut self.buffer));
        match count {
            Ok(0) => {
                self.output = None;
                self.deadline = None;
                Poll::Ready(Ok(None))
            }
            Ok(_) => Poll::Ready(Ok(Some(self.buffer.split().freeze()))),
            Err(error) => {
                self.output = None;
                Poll::Ready(Err(error))
            }
        }
    }
}
