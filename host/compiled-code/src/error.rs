//! Why a component could not be compiled.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The reason why there is no compiled file. Cloned for each caller that waited for the same file.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CompileError {
    /// The folder of compiled files cannot be used.
    #[error("cannot use the folder of compiled files `{}`", path.display())]
    Folder {
        /// The folder or the file in it.
        path: PathBuf,
        /// The system's error.
        source: Arc<io::Error>,
    },
    /// The folder of compiled files belongs to another user, who could put any code there.
    #[error("the folder of compiled files `{}` belongs to user {owner}, not to user {we}; remove it or change its owner", path.display())]
    Owner {
        /// The folder.
        path: PathBuf,
        /// Its owner's uid.
        owner: u32,
        /// The uid of this process.
        we: u32,
    },
    /// Somebody else can replace the folder of compiled files with another one.
    #[error(
        "the folder of compiled files `{}` is in `{}`, which others can change (it belongs to user {owner} and has mode {mode:o}): choose another state folder, or make that one root's and writable by nobody else",
        folder.display(), parent.display()
    )]
    Parent {
        /// The folder.
        folder: PathBuf,
        /// The folder above it.
        parent: PathBuf,
        /// The owner of that folder.
        owner: u32,
        /// The mode of that folder.
        mode: u32,
    },
    /// The component's own file cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: Arc<io::Error>,
    },
    /// The component is too large to be compiled here.
    #[error("`{name}` has {size} bytes, more than the limit of {limit}")]
    TooLarge {
        /// The component's file.
        name: String,
        /// Its size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The compiler did not start.
    #[error("cannot run the compiler `{}`", path.display())]
    NoCompiler {
        /// The program.
        path: PathBuf,
        /// The system's error.
        source: Arc<io::Error>,
    },
    /// The compiler reports that it is not a valid component, with the reason.
    #[error("the compiler refuses `{name}`: {reason}")]
    Refused {
        /// The component's file.
        name: String,
        /// The compiler's message.
        reason: String,
    },
    /// A signal ended the compiler: it exceeded its limits.
    #[error(
        "compiling `{name}` was ended by signal {signal} (limits: {memory_mib} MiB of memory, {} s of CPU time){}{}",
        cpu.as_secs(), if reason.is_empty() { "" } else { ": " }, reason
    )]
    Killed {
        /// The component's file.
        name: String,
        /// The signal.
        signal: i32,
        /// The limit on memory.
        memory_mib: u64,
        /// The limit on CPU time.
        cpu: Duration,
        /// The compiler's message before that.
        reason: String,
    },
    /// The compiler took too long.
    #[error("compiling `{name}` took longer than {} s", limit.as_secs())]
    TimedOut {
        /// The component's file.
        name: String,
        /// The limit.
        limit: Duration,
    },
    /// The compiler neither computed nor passed on compiled code.
    #[error("compiling `{name}` made no progress for {} s", limit.as_secs())]
    Stuck {
        /// The component's file.
        name: String,
        /// The limit.
        limit: Duration,
    },
    /// The compiled code is too large.
    #[error("`{name}` compiles to more than {limit} bytes")]
    OutputTooLarge {
        /// The component's file.
        name: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// Compiling it has failed before, and nothing has changed since.
    #[error("{reason} (an earlier attempt failed, and the next one is due in {})", words(*again_in))]
    FailedBefore {
        /// The time until the next attempt.
        again_in: Duration,
        /// The error, in a sentence.
        reason: String,
    },
    /// The compiler's output does not load: the component needs more than any component may have, or the compiler's
    /// version differs from that of this program.
    #[error("the compiler's output for `{name}` does not load: {reason} (if this is not a limit, check that `{}` has the same version as this program)", compiler.display())]
    Unusable {
        /// The component's file.
        name: String,
        /// The program.
        compiler: PathBuf,
        /// The engine's error.
        reason: String,
    },
}

impl CompileError {
    pub(crate) fn folder(path: &Path, source: io::Error) -> Self {
        CompileError::Folder {
            path: path.to_owned(),
            source: Arc::new(source),
        }
    }
}

/// The reason why a file is not run as compiled code.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The key of its folder is not available.
    #[error("failed to read the key of the compiled code in `{}`", folder.display())]
    Key {
        /// The folder.
        folder: PathBuf,
        /// The system's error, or what is wrong with the key.
        source: io::Error,
    },
    /// It cannot be read.
    #[error("failed to read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// No cache of this device wrote this content under this name.
    #[error("`{}` is damaged, or was not compiled on this device", path.display())]
    Unsound {
        /// The file.
        path: PathBuf,
    },
}

/// Writes a time in the largest unit that is precise enough.
fn words(time: Duration) -> String {
    match time.as_secs() / 60 {
        minutes @ 120.. => format!("{} h", minutes / 60),
        minutes => format!("{} min", minutes.max(1)),
    }
}
