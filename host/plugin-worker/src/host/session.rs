//! One process of a worker, from its greeting to its end.

use std::io::Result;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Notify, mpsc};

use super::process::FolderState;
use crate::frames::{FrameReader, Frames};
use crate::notes::Notes;
use crate::wire::{MOST_OF_WORKER, Note, Question, Reply};

/// A worker that was started, as others talk to it.
pub(super) struct Session {
    /// Which of all that were started; never 0.
    pub(super) generation: u64,
    notes: Arc<Notes>,
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
    pub(super) reader: FrameReader<OwnedReadHalf>,
    /// None where it was given away.
    pub(super) write: Option<OwnedWriteHalf>,
    pub(super) lease: Lease,
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

    /// Begins a conversation, as a `call` or as none.
    pub(super) async fn converse(
        self: &Arc<Self>,
        call: u64,
        question: &Question,
        descriptor: Option<BorrowedFd<'_>>,
    ) -> Result<Conversation> {
        let (own, other) = std::os::unix::net::UnixStream::pair()?;
        own.set_nonblocking(true)?;
        let (read, mut write) = UnixStream::from_std(own)?.into_split();
        let lease = Lease::new(self);
        let frames = Frames::message(question)?;
        let others: OwnedFd = other.into();
        let descriptors: Vec<BorrowedFd<'_>> =
            std::iter::once(others.as_fd()).chain(descriptor).collect();
        let note = Note::Conversation { call };
        // A large question does not fit before the worker reads it.
        self.notes.send(&note, &descriptors).await?;
        drop(others);
        write.write_all(frames.bytes()).await?;
        Ok(Conversation {
            reader: FrameReader::new(read, MOST_OF_WORKER),
            write: Some(write),
            lease,
        })
    }

    /// Asks, and waits for the answer; none where the worker ends before.
    pub(super) async fn ask(
        self: &Arc<Self>,
        question: &Question,
        descriptor: Option<BorrowedFd<'_>>,
    ) -> Result<Option<Reply>> {
        let mut conversation = self.converse(0, question, descriptor).await?;
        conversation.reader.message().await
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
