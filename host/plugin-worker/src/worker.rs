//! The worker's end: answers the host's questions with a runtime in this process.

mod conversation;
mod host_link;

use std::collections::HashMap;
use std::io::{Error, ErrorKind, Result};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use confinement::Report;
use parking_lot::Mutex;
use plugin_protocol::{GuestCode, GuestPlugin, GuestRuntime};
use tokio::task::AbortHandle;

use crate::frames::Frames;
use crate::notes::Notes;
use crate::socket;
use crate::wire::{Note, Question, Reply, VERSION};
use conversation::Conversation;
use host_link::HostLink;

/// What a worker gets for its work.
pub struct Assignment {
    /// The socket from the host.
    pub notes: OwnedFd,
    /// The walls around this process.
    pub walls: Report,
    /// The runtime for plugins, or why there is none, which is reported to the host.
    pub runtime: std::result::Result<Arc<dyn GuestRuntime>, String>,
}

/// State that all conversations share.
struct Worker {
    runtime: Arc<dyn GuestRuntime>,
    host: Arc<HostLink>,
    codes: Mutex<HashMap<u64, Arc<dyn GuestCode>>>,
    plugins: Mutex<HashMap<u64, Arc<dyn GuestPlugin>>>,
    /// The current conversations.
    conversations: Mutex<HashMap<u64, AbortHandle>>,
}

/// Works until the host is gone. Must be called in a tokio runtime.
///
/// # Errors
/// If the host sends something that a host does not send, or cannot be read from.
pub async fn serve(assignment: Assignment) -> Result<()> {
    let notes = Notes::new(assignment.notes)?;
    let Some((Note::Conversation { id }, descriptors)) = notes.receive().await? else {
        return Err(Error::new(
            ErrorKind::InvalidData,
            "the host did not begin a conversation",
        ));
    };
    let mut descriptors = descriptors.into_iter();
    let mut greeting = Conversation::over(descriptors.next())?;
    let host_calls = descriptors.next().ok_or_else(socket::missing)?;
    let runtime = greet(&mut greeting, assignment.walls, assignment.runtime).await?;
    let worker = Arc::new(Worker {
        runtime,
        host: HostLink::start(host_calls)?,
        codes: Mutex::default(),
        plugins: Mutex::default(),
        conversations: Mutex::default(),
    });
    worker.go_on(id, greeting, None);
    while let Some((note, descriptors)) = notes.receive().await? {
        match note {
            Note::Conversation { id } => {
                let mut descriptors = descriptors.into_iter();
                let conversation = Conversation::over(descriptors.next())?;
                worker.go_on(id, conversation, descriptors.next());
            }
            Note::Cancel { conversation } => {
                if let Some(task) = worker.conversations.lock().remove(&conversation) {
                    task.abort();
                }
            }
            Note::Unload { plugin } => drop(worker.plugins.lock().remove(&plugin)),
            Note::Forget { code } => drop(worker.codes.lock().remove(&code)),
        }
    }
    Ok(())
}

/// The first conversation.
async fn greet(
    conversation: &mut Conversation,
    walls: Report,
    runtime: std::result::Result<Arc<dyn GuestRuntime>, String>,
) -> Result<Arc<dyn GuestRuntime>> {
    let question = conversation.reader.message().await?;
    let refusal = match (question, &runtime) {
        (Some(Question::Hello { version }), _) if version != VERSION => {
            Some(format!("it has version {VERSION}, not {version}"))
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
    let frames = Frames::message(&reply)?;
    conversation.write.write_all(frames.bytes()).await?;
    match (refusal, runtime) {
        (None, Ok(runtime)) => Ok(runtime),
        (refusal, _) => Err(Error::other(refusal.unwrap_or_default())),
    }
}

impl Worker {
    /// Starts a separate task for a conversation. The conversation can be cancelled by its number from here on.
    fn go_on(self: &Arc<Self>, id: u64, conversation: Conversation, file: Option<OwnedFd>) {
        let worker = Arc::clone(self);
        let mut conversations = self.conversations.lock();
        let task = tokio::spawn(async move {
            // If nobody wants the answer any more, that is not the worker's concern.
            let _ = worker.converse(conversation, file).await;
            worker.conversations.lock().remove(&id);
        });
        conversations.insert(id, task.abort_handle());
    }

    fn code(&self, code: u64) -> Option<Arc<dyn GuestCode>> {
        self.codes.lock().get(&code).cloned()
    }
}
