//! The worker's end: answers the host's questions with a runtime in this process.

mod conversation;
mod host_link;

use std::collections::HashMap;
use std::io::{Error, ErrorKind, Result};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use confinement::Report;
use plugin_protocol::{GuestCode, GuestPlugin, GuestRuntime};
use tokio::net::UnixStream;
use tokio::task::AbortHandle;

use crate::frames::{FrameReader, Frames};
use crate::notes::Notes;
use crate::wire::{MOST_OF_HOST, Note, Question, Reply, VERSION};
use conversation::{Conversation, stream_of};
use host_link::HostLink;

/// What a worker works with.
pub struct Assignment {
    /// The socket that the host gave it.
    pub notes: OwnedFd,
    /// The walls around this process.
    pub walls: Report,
    /// Where plugins run; or why they cannot, which the host is told.
    pub runtime: std::result::Result<Arc<dyn GuestRuntime>, String>,
}

/// What all conversations share.
struct Worker {
    runtime: Arc<dyn GuestRuntime>,
    host: Arc<HostLink>,
    codes: Mutex<HashMap<u64, Arc<dyn GuestCode>>>,
    plugins: Mutex<HashMap<u64, Arc<dyn GuestPlugin>>>,
    /// The calls that are under way.
    calls: Mutex<HashMap<u64, AbortHandle>>,
}

/// Works until the host is gone. Runs in a tokio runtime.
///
/// # Errors
/// Where the host says something else than a host does, or cannot be heard.
pub async fn serve(assignment: Assignment) -> Result<()> {
    let notes = Notes::new(assignment.notes)?;
    let Some((Note::Conversation { .. }, descriptors)) = notes.receive().await? else {
        return Err(Error::new(ErrorKind::InvalidData, "no conversation began"));
    };
    let mut descriptors = descriptors.into_iter();
    let stream = stream_of(descriptors.next())?;
    let host_calls = stream_of(descriptors.next())?;
    let runtime = greet(stream, assignment.walls, assignment.runtime).await?;
    let worker = Arc::new(Worker {
        runtime,
        host: HostLink::start(host_calls),
        codes: Mutex::default(),
        plugins: Mutex::default(),
        calls: Mutex::default(),
    });
    while let Some((note, descriptors)) = notes.receive().await? {
        match note {
            Note::Conversation { call } => worker.begin(call, descriptors),
            Note::Cancel { call } => {
                if let Some(call) = lock(&worker.calls).remove(&call) {
                    call.abort();
                }
            }
            Note::Unload { plugin } => drop(lock(&worker.plugins).remove(&plugin)),
            Note::Forget { code } => drop(lock(&worker.codes).remove(&code)),
        }
    }
    Ok(())
}

/// The first conversation.
async fn greet(
    stream: UnixStream,
    walls: Report,
    runtime: std::result::Result<Arc<dyn GuestRuntime>, String>,
) -> Result<Arc<dyn GuestRuntime>> {
    let (read, write) = stream.into_split();
    let mut reader = FrameReader::new(read, MOST_OF_HOST);
    let question = reader.message().await?;
    let mut conversation = Conversation { reader, write };
    let refusal = match (question, &runtime) {
        (Some(Question::Hello { version }), _) if version != VERSION => {
            Some(format!("it is of version {VERSION}, and not of {version}"))
        }
        (Some(Question::Hello { .. }), Ok(_)) => None,
        (Some(Question::Hello { .. }), Err(reason)) => Some(reason.clone()),
        _ => Some("the host did not begin with a greeting".to_owned()),
    };
    let reply = match &refusal {
        None => Reply::Hello {
            version: VERSION.to_owned(),
            walls,
        },
        Some(reason) => Reply::Refused(reason.clone()),
    };
    conversation.write(&Frames::message(&reply)?).await?;
    match (refusal, runtime) {
        (None, Ok(runtime)) => Ok(runtime),
        (refusal, _) => Err(Error::other(refusal.unwrap_or_default())),
    }
}

impl Worker {
    /// Has a task of its own for a conversation. A call is known by its number from here on, so that it can be given up.
    fn begin(self: &Arc<Self>, call: u64, descriptors: Vec<OwnedFd>) {
        let worker = Arc::clone(self);
        let mut calls = lock(&self.calls);
        let task = tokio::spawn(async move {
            // Who does not want to hear the answer is no matter of the worker's.
            let _ = worker.converse(descriptors).await;
            lock(&worker.calls).remove(&call);
        });
        if call != 0 {
            calls.insert(call, task.abort_handle());
        }
    }

    fn code(&self, code: u64) -> Option<Arc<dyn GuestCode>> {
        lock(&self.codes).get(&code).cloned()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
