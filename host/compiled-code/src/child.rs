//! Running `supervisor-compile`: wasm in, native code out, within limits.
//!
//! The child gets only three pipes: no environment and no folder; before it reads a byte of the component, it gives up
//! its privileges. Its resources are limited twice: by limits that it sets for itself, and by the time and byte limits
//! here.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use confinement::Report;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

use crate::entries::UnfinishedFile;
use crate::functions::{Functions, MOST_NEW};
use crate::lasting_thread::spawn;
use crate::{CompileError, Profile, progress};

/// The limits of compilations and of the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The largest component, in bytes.
    pub wasm: u64,
    /// The largest compiled file, in bytes.
    pub output: u64,
    /// The child's address space, in bytes.
    pub memory: u64,
    /// The child's CPU time, in whole seconds. A small board needs twenty times as much as a desktop.
    pub cpu: Duration,
    /// How long the child may make no progress: it neither computes nor passes on compiled code.
    pub idle: Duration,
    /// The wall time of a compilation. Far more than the CPU time, because compilers have a low priority: on a busy board
    /// they get a small share of the processor.
    pub wall: Duration,
    /// How many children run at the same time for each [`Profile`]: plugins and services do not wait for each other.
    pub at_once: usize,
    /// How many bytes of compiled files are kept in addition to those [in use](crate::Cache::keep); the least recently
    /// used ones are removed first.
    pub folder: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            wasm: 64 << 20,
            output: 256 << 20,
            memory: 1 << 30,
            cpu: Duration::from_secs(300),
            idle: Duration::from_secs(60),
            wall: Duration::from_secs(3600),
            at_once: 2,
            folder: 512 << 20,
        }
    }
}

/// The least address space in which components of usual size compile, in bytes.
const LEAST_MEMORY: u64 = 256 << 20;

impl Limits {
    /// Returns the limits for a board with this much memory, in bytes: a child gets at most half of it, and a small
    /// board does not divide its memory among many.
    #[must_use]
    pub fn for_board(memory: u64) -> Limits {
        let most = Limits::default();
        Limits {
            memory: (memory / 2).clamp(LEAST_MEMORY, most.memory),
            at_once: if memory < SMALL_BOARD {
                1
            } else {
                most.at_once
            },
            ..most
        }
    }
}

/// A board with less memory than this, in bytes, compiles one component of a [`Profile`] at a time.
const SMALL_BOARD: u64 = 1 << 30;

/// The most bytes of the compiler's error output that are kept.
const MESSAGE: u64 = 4 << 10;

/// How much of the compiled code is in memory at a time, in bytes.
const PIECE: usize = 64 << 10;

/// The beginning of the line with which the compiler reports the walls around it.
pub const WALLS: &str = "walls: ";

/// The compiler, and how it is run.
pub(crate) struct Compiler<'a> {
    pub(crate) program: &'a Path,
    pub(crate) limits: &'a Limits,
    pub(crate) profile: Profile,
    /// Whether it compiles nothing if a wall around it is missing.
    pub(crate) requires_confinement: bool,
}

/// Compiles `wasm` in a child, and writes the compiled code to `output` as it arrives. The child takes over known
/// `functions`, if there are any. `name` is for messages. Returns the walls around the child, if it reported them.
///
/// Dropping the future kills the child.
pub(crate) async fn compile(
    compiler: Compiler<'_>,
    name: &str,
    wasm: &[u8],
    functions: Option<&mut Functions>,
    output: &mut UnfinishedFile,
) -> Result<Option<Report>, CompileError> {
    let Compiler {
        program: compiler,
        limits,
        profile,
        requires_confinement,
    } = compiler;
    let not_run = |error| CompileError::NoCompiler {
        path: compiler.to_owned(),
        source: Arc::new(error),
    };
    let mut command = Command::new(compiler);
    command
        .args(["--profile", profile.into()])
        .args(["--wasm-bytes", &limits.wasm.to_string()])
        .args(["--memory-bytes", &limits.memory.to_string()])
        .args(["--cpu-seconds", &limits.cpu.as_secs().max(1).to_string()])
        .args(requires_confinement.then_some("--require-confinement"));
    if let Some(functions) = &functions {
        command
            .args(["--functions-bytes", &functions.known.size().to_string()])
            .args(["--new-functions-bytes", &MOST_NEW.to_string()]);
    }
    command
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A terminal sends Ctrl-C to the parent's whole group. The parent ends the compiler itself; if the signal did,
        // the compilation would count as failed.
        .process_group(0)
        .kill_on_drop(true);
    let mut child = spawn(command).await.map_err(not_run)?;
    let (Some(stdin), Some(stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(not_run(std::io::Error::other("its pipes are missing")));
    };

    let process = child.id();
    let size = output.size_counter();
    let (known, new) = functions
        .map(|functions| (&mut functions.known, &mut functions.new))
        .unzip();
    let conversation = async {
        let send = async {
            // A child that refuses early closes its end: its message is the error, not this. One that gets only a part
            // finds no component after it.
            let sent = match known {
                Some(known) => known.send(stdin).await,
                None => Ok(stdin),
            };
            if let Ok(mut stdin) = sent {
                let _ = stdin.write_all(wasm).await;
            }
        };
        let receive = async {
            match new {
                None => write_up_to(stdout, limits.output + 1, output).await,
                Some(new) => write_both(stdout, limits.output + 1, output, new).await,
            }
        };
        let ((), written, message) = tokio::join!(send, receive, read_up_to(stderr, MESSAGE));
        (written, message, child.wait().await)
    };
    // `kill_on_drop` kills the child when the future is dropped.
    let (written, message, status) = tokio::select! {
        ended = conversation => ended,
        () = tokio::time::sleep(limits.wall) => {
            return Err(CompileError::TimedOut {
                name: name.to_owned(),
                limit: limits.wall,
            });
        }
        () = progress::until_stuck(process, limits.idle, &size) => {
            return Err(CompileError::Stuck {
                name: name.to_owned(),
                limit: limits.idle,
            });
        }
    };

    let (walls, reason) = walls_and_reason(&message);
    let status = status.map_err(not_run)?;
    written?;
    if output.size() > limits.output {
        return Err(CompileError::OutputTooLarge {
            name: name.to_owned(),
            limit: limits.output,
        });
    }
    if let Some(signal) = status.signal() {
        return Err(CompileError::Killed {
            name: name.to_owned(),
            signal,
            memory_mib: limits.memory >> 20,
            cpu: limits.cpu,
            reason,
        });
    }
    if !status.success() {
        let reason = if reason.is_empty() {
            format!("the compiler ended with {status}")
        } else {
            reason
        };
        return Err(CompileError::Refused {
            name: name.to_owned(),
            reason,
        });
    }
    Ok(walls)
}

/// Splits the child's message into the walls in its first line, if there are any, and the rest.
fn walls_and_reason(message: &[u8]) -> (Option<Report>, String) {
    let text = String::from_utf8_lossy(message);
    let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
    match first.strip_prefix(WALLS) {
        Some(walls) => (serde_json::from_str(walls).ok(), rest.trim().to_owned()),
        None => (None, text.trim().to_owned()),
    }
}

/// Writes everything from `pipe` to `output`, up to its end or up to `limit` bytes.
async fn write_up_to(
    pipe: impl AsyncRead + Unpin,
    limit: u64,
    output: &mut UnfinishedFile,
) -> Result<(), CompileError> {
    let (mut pipe, mut piece) = (pipe.take(limit), vec![0; PIECE]);
    // As in `read_up_to`.
    while let Ok(length @ 1..) = pipe.read(&mut piece).await {
        output
            .write(piece.get(..length).unwrap_or_default())
            .await?;
    }
    Ok(())
}

/// Like [`write_up_to`], for output that begins with the length of the compiled code and continues with new functions.
async fn write_both(
    mut pipe: impl AsyncRead + Unpin,
    limit: u64,
    output: &mut UnfinishedFile,
    new: &mut UnfinishedFile,
) -> Result<(), CompileError> {
    // A child that failed wrote nothing: the exit status shows that.
    let Ok(length) = pipe.read_u64_le().await else {
        return Ok(());
    };
    write_up_to(&mut pipe, length.min(limit), output).await?;
    if length < limit {
        write_up_to(pipe, MOST_NEW, new).await?;
    }
    Ok(())
}

/// Reads up to the end or up to `limit` bytes, whichever comes first. Then the pipe is closed, so a child that keeps
/// writing ends.
async fn read_up_to(pipe: impl AsyncRead + Unpin, limit: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    // An error of the pipe counts as the end of the output; the exit status shows the rest.
    let _ = pipe.take(limit).read_to_end(&mut bytes).await;
    bytes
}
