//! One process of a worker, from its greeting to its end.

use std::io::Result;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};

use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};

use super::process::FolderState;
use crate::frames::{FrameReader, Frames};
use crate::notes::Notes;
use crate::socket::{self, ReadHalf, WriteHalf};
use crate::wire::{MOST_OF_WORKER, Note, Question, Reply};

/// How many conversations are kept for further questions: as many calls as run at once on a busy device.
const IDLE: usize = 8;

/// A worker that was started, as others talk to it.
pub(super) struct Session {
    /// Which of all that were started; never 0.
    pub(super) generation: u64,
    notes: Arc<Notes>,
    /// Conversations for further questions, the latest last.
    idle: Mutex<Vec<ConversationSocket>>,
    /// The number of the latest conversation.
    latest: AtomicU64,
    /// Notes that nobody waits for.
    later: mpsc::UnboundedSender<Note>,
    /// How many conversations are under way, or about to be.
    pub(super) open: AtomicUsize,
    /// Told when there is one.
    pub(super) opened: Notify,
    /// Told when there is none any more.
    pub(super) closed: Notify,
    /// Whether it had something to do since somebody last looked.
    pub(super) used: AtomicBool,
    /// Told when it is to end once it has nothing to do.
    pub(super) retired: Notify,
    /// The folders that it can reach, as they were when it began.
    pub(super) folders: Vec<FolderState>,
}

/// A conversation that is under way.
pub(super) struct Conversation {
    pub(super) socket: ConversationSocket,
    lease: Lease,
}

/// What a conversation is held over, one question after another.
pub(super) struct ConversationSocket {
    pub(super) id: u64,
    pub(super) reader: FrameReader<ReadHalf>,
    /// None where it was given away.
    pub(super) write: Option<WriteHalf>,
}

impl Session {
    /// Runs in a tokio runtime.
    pub(super) fn new(generation: u64, notes: Notes, folders: Vec<FolderState>) -> Session {
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
        }
    }

    /// Sends a note, whenever there is room.
    pub(super) fn note(&self, note: Note) {
        // Where the worker is gone nobody has to know.
        let _ = self.later.send(note);
    }

    /// Asks a question, to which `descriptor` may belong: in a conversation that is there, where that is not needed.
    pub(super) async fn converse(
        self: &Arc<Self>,
        question: &Question,
        descriptor: Option<BorrowedFd<'_>>,
    ) -> Result<Conversation> {
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
        // A large question does not fit before the worker reads it.
        if let Some(write) = &mut socket.write {
            write.write_all(frames.bytes()).await?;
        }
        Ok(Conversation { socket, lease })
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

    /// Takes a conversation back whose answer was read to its end.
    pub(super) fn take_back(&self, Conversation { socket, lease }: Conversation) {
        drop(lease);
        // What says more than it was asked for is not asked again.
        if socket.write.is_some() && socket.reader.is_drained() {
            let mut idle = self.idle.lock();
            if idle.len() < IDLE {
                idle.push(socket);
            }
        }
    }

    /// Asks, and waits for the answer; none where the worker ends before.
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

/// A session that has something to do for as long as this is there.
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
