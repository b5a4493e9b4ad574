//! The thread that starts compilers.
//!
//! The kernel kills a compiler when the thread that started it ends, so that a compiler does not outlive a killed
//! supervisor and compete for memory with those of the next one. A thread of tokio may end earlier than the process: one
//! that has run blocking work, for example. This one does not.

use std::io;
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// A command, the runtime that waits for the process, and where the process goes.
type Request = (Command, Handle, oneshot::Sender<io::Result<Child>>);

/// Starts a process from the thread that lasts as long as this process.
///
/// # Errors
/// If the process, or the thread, cannot be started.
pub(crate) async fn spawn(command: Command) -> io::Result<Child> {
    spawn_in(Handle::current(), command).await
}

/// As [`spawn`], for another runtime than the current one.
async fn spawn_in(runtime: Handle, command: Command) -> io::Result<Child> {
    let (answer, child) = oneshot::channel();
    thread_of_compilers()?
        .send((command, runtime, answer))
        .map_err(|_| ended())?;
    child.await.map_err(|_| ended())?
}

fn thread_of_compilers() -> io::Result<&'static Sender<Request>> {
    static THREAD: OnceLock<Sender<Request>> = OnceLock::new();
    if let Some(requests) = THREAD.get() {
        return Ok(requests);
    }
    let (requests, received) = channel::<Request>();
    let serve = move || {
        for (mut command, runtime, answer) in received {
            let _entered = runtime.enter();
            // A child that nobody waits for any more is killed by its drop.
            let _ = answer.send(command.spawn());
        }
    };
    thread::Builder::new()
        .name("compilers".to_owned())
        .spawn(serve)?;
    // Of two that are started at the same time, one is kept, and the other ends when its sender is dropped.
    Ok(THREAD.get_or_init(|| requests))
}

fn ended() -> io::Error {
    io::Error::other("the thread that starts compilers has ended")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::process::Stdio;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn a_compiler_outlives_the_thread_that_requested_it() {
        let runtime = Handle::current();
        let requesting = thread::spawn(move || {
            let mut command = Command::new("setpriv");
            command
                .args(["--pdeathsig", "KILL", "cat"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .kill_on_drop(true);
            let own = tokio::runtime::Builder::new_current_thread().build();
            own.unwrap().block_on(spawn_in(runtime, command))
        });
        let mut child = requesting.join().unwrap().unwrap();
        let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        input.write_all(b"lives").await.unwrap();
        drop(input);
        let mut text = String::new();
        output.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "lives");
        assert!(child.wait().await.unwrap().success());
    }
}
