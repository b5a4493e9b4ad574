//! Why a component could not be compiled.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Why there is no compiled file. Cloned to each of those who waited for the same file.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CompileError {
    /// The folder of compiled files cannot be used.
    #[error("cannot use the folder of compiled files `{}`", path.display())]
    Folder {
        /// The folder or the file in it.
        path: PathBuf,
        /// What the system said.
        source: Arc<io::Error>,
    },
    /// The folder of compiled files is another user's, who could put any code there.
    #[error("the folder of compiled files `{}` belongs to user {owner}, not to user {we}; remove it or change its owner", path.display())]
    Owner {
        /// The folder.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Who we are.
        we: u32,
    },
    /// Somebody else can put another folder in the place of the folder of compiled files.
    #[error(
        "the folder of compiled files `{}` is in `{}`, which others can change (it belongs to user {owner} and has mode {mode:o}): choose another state folder, or make that one root's and writable by nobody else",
        folder.display(), parent.display()
    )]
    Parent {
        /// The folder.
        folder: PathBuf,
        /// The one above it.
        parent: PathBuf,
        /// Whose that is.
        owner: u32,
        /// Its mode.
        mode: u32,
    },
    /// The component's own file cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
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
        /// What the system said.
        source: Arc<io::Error>,
    },
    /// The compiler says that it is not a valid component, and why.
    #[error("cannot compile `{name}`: {reason}")]
    Refused {
        /// The component's file.
        name: String,
        /// What the compiler said.
        reason: String,
    },
    /// The compiler was ended by a signal: it was over its limits.
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
        /// What the compiler said before.
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
    /// The compiled code is too large.
    #[error("`{name}` compiles to more than {limit} bytes")]
    OutputTooLarge {
        /// The component's file.
        name: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// It did not compile before, and nothing has changed since.
    #[error("{reason} (an earlier attempt failed, and the next one is due in {})", words(*again_in))]
    FailedBefore {
        /// When it is tried again.
        again_in: Duration,
        /// What the error was, in a sentence.
        reason: String,
    },
    /// The compiler's output does not load: the component wants more than there is for any, or the compiler is of another
    /// version than this program.
    #[error("the compiler's output for `{name}` does not load: {reason} (if this is not a limit, check that `{}` has the same version as this program)", compiler.display())]
    Unusable {
        /// The component's file.
        name: String,
        /// The program.
        compiler: PathBuf,
        /// What the engine said.
        reason: String,
    },
}

/// Why a file is not run as compiled code.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The key of its folder cannot be had.
    #[error("failed to read the key of the compiled code in `{}`", folder.display())]
    Key {
        /// The folder.
        folder: PathBuf,
        /// What the system said, or what is wrong with the key.
        source: io::Error,
    },
    /// It cannot be read.
    #[error("failed to read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is not what a cache of this device wrote under its name.
    #[error("`{}` is damaged, or was not compiled on this device", path.display())]
    Unsound {
        /// The file.
        path: PathBuf,
    },
}

/// A time in the largest unit that says enough.
fn words(time: Duration) -> String {
    match time.as_secs() / 60 {
        minutes @ 120.. => format!("{} h", minutes / 60),
        minutes => format!("{} min", minutes.max(1)),
    }
}
