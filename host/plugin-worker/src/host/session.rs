//! One process of a worker, from its greeting to its end.

use std::io::Result;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};

use super::folders::FolderState;
use super::groups::ProcessGroups;
use crate::frames::{FrameReader, Frames};
use crate::notes::Notes;
use crate::socket::{self, ReadHalf, WriteHalf};
use crate::wire::{MOST_OF_WORKER, Note, Question, Reply};

/// How many conversations are kept for further questions: as many as there are concurrent calls on a busy device.
const IDLE: usize = 8;

/// A started worker, as seen by the rest of the host's end.
pub(super) struct Session {
    /// The number of this start among all starts; never 0.
    pub(super) generation: u64,
    notes: Arc<Notes>,
    /// Conversations for further questions; the most recent is last.
    idle: Mutex<Vec<ConversationSocket>>,
    /// The number of the latest conversation.
    latest: AtomicU64,
    /// Notes that nothing waits for.
    later: mpsc::UnboundedSender<Note>,
    /// How many conversations are under way, or about to be.
    pub(super) open: AtomicUsize,
    /// Notified when one begins.
    pub(super) opened: Notify,
    /// Notified when the last one has ended.
    pub(super) closed: Notify,
    /// Whether it had something to do since the last check.
    pub(super) used: AtomicBool,
    /// Notified when it should end once it has nothing to do.
    pub(super) retired: Notify,
    /// The folders that it can reach, as they were when it started.
    pub(super) folders: Vec<FolderState>,
    /// The control groups around its process, for as long as that exists.
    pub(super) groups: Weak<ProcessGroups>,
}

/// A conversation that is under way.
pub(super) struct OpenConversation {
    pub(super) socket: ConversationSocket,
    lease: Lease,
}

/// The socket of a conversation, for one question after another.
pub(super) struct ConversationSocket {
    pub(super) id: u64,
    pub(super) reader: FrameReader<ReadHalf>,
    /// `None` if it was given away.
    pub(super) write: Option<WriteHalf>,
}

impl Session {
    /// Creates a session. Must be called in a tokio runtime.
    pub(super) fn new(
        generation: u64,
        notes: Notes,
        folders: Vec<FolderState>,
        groups: Weak<ProcessGroups>,
    ) -> Session {
        let notes = Arc::new(notes);
        let (later, mut waiting) = mpsc::unbounded_channel::<Note>();
        let sender = Arc::clone(&notes);
        // Ends with the session.
        tokio::spawn(async move {
            while let Some(note) = waiting.recv().await {
                if sender.send(&note, &[]).await.is_err() {
                    return;
                }
            }
        });
        Session {
            generation,
            notes,
            idle: Mutex::default(),
            latest: AtomicU64::new(0),
            later,
            open: AtomicUsize::new(0),
            opened: Notify::new(),
            closed: Notify::new(),
            used: AtomicBool::new(true),
            retired: Notify::new(),
            folders,
            groups,
        }
    }

    /// Sends a note as soon as there is room.
    pub(super) fn note(&self, note: Note) {
        // If the worker is gone, the note is not needed.
        let _ = self.later.send(note);
    }

    /// Asks a question, which `descriptor` may belong to. Uses an existing conversation if there is no descriptor.
    pub(super) async fn converse(
        self: &Arc<Self>,
        question: &Question,
        descriptor: Option<BorrowedFd<'_>>,
    ) -> Result<OpenConversation> {
        let lease = Lease::new(self);
        let frames = Frames::message(question)?;
        let idle = match descriptor {
            None => self.idle.lock().pop(),
            Some(_) => None,
        };
        let mut socket = match idle {
            Some(socket) => socket,
            None => self.begin(descriptor).await?,
        };
        // A large question does not fit until the worker reads it.
        if let Some(write) = &mut socket.write {
            write.write_all(frames.bytes()).await?;
        }
        Ok(OpenConversation { socket, lease })
    }

    async fn begin(&self, descriptor: Option<BorrowedFd<'_>>) -> Result<ConversationSocket> {
        let (own, others) = socket::pair()?;
        let (read, write) = socket::halves(own)?;
        let id = self.latest.fetch_add(1, SeqCst) + 1;
        let descriptors: Vec<BorrowedFd<'_>> =
            std::iter::once(others.as_fd()).chain(descriptor).collect();
        self.notes
            .send(&Note::Conversation { id }, &descriptors)
            .await?;
        Ok(ConversationSocket {
            id,
            reader: FrameReader::new(read, MOST_OF_WORKER),
            write: Some(write),
        })
    }

    /// Takes back a conversation whose answer was read to its end.
    pub(super) fn take_back(&self, OpenConversation { socket, lease }: OpenConversation) {
        drop(lease);
        // A conversation that delivered more than was requested is not used again.
        if socket.write.is_some() && socket.reader.is_drained() {
            let mut idle = self.idle.lock();
            if idle.len() < IDLE {
                idle.push(socket);
            }
        }
    }

    /// Asks a question and waits for the answer; returns `None` if the worker ends before.
    pub(super) async fn ask(
        self: &Arc<Self>,
        question: &Question,
        descriptor: Option<BorrowedFd<'_>>,
    ) -> Result<Option<Reply>> {
        let mut conversation = self.converse(question, descriptor).await?;
        let reply = conversation.socket.reader.message().await?;
        self.take_back(conversation);
        Ok(reply)
    }
}

/// Marks a session as having something to do, as long as this exists.
pub(super) struct Lease(pub(super) Arc<Session>);

impl Lease {
    pub(super) fn new(session: &Arc<Session>) -> Lease {
        session.open.fetch_add(1, SeqCst);
        session.used.store(true, SeqCst);
        session.opened.notify_one();
        Lease(Arc::clone(session))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.0.open.fetch_sub(1, SeqCst) == 1 {
            self.0.closed.notify_one();
        }
    }
}
