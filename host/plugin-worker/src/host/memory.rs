//! How much memory the instances of a worker have, in its process and in the control groups around it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use tokio::sync::Mutex;

use super::groups::ProcessGroups;
use super::session::Session;
use crate::wire::Question;

/// The memory of all instances together, which a policy can change while a process runs.
pub(super) struct InstanceMemory {
    bytes: AtomicUsize,
    /// Held while a process is informed, so that the last value is also the last one to arrive.
    turn: Mutex<()>,
}

impl InstanceMemory {
    pub(super) fn new(bytes: usize) -> InstanceMemory {
        InstanceMemory {
            bytes: AtomicUsize::new(bytes),
            turn: Mutex::default(),
        }
    }

    /// Returns it in bytes.
    pub(super) fn get(&self) -> usize {
        self.bytes.load(SeqCst)
    }

    /// Sets it, and returns whether it was different.
    pub(super) fn set(&self, bytes: usize) -> bool {
        self.bytes.swap(bytes, SeqCst) != bytes
    }

    /// Gives a running process what is set now. Its control groups get more before it uses more, and less after it
    /// uses less.
    pub(super) async fn give(&self, session: &Arc<Session>) {
        let _turn = self.turn.lock().await;
        let bytes = self.get();
        let groups = session.groups.upgrade();
        let grows = groups
            .as_ref()
            .is_some_and(|groups| groups.are_below(bytes));
        if grows {
            limit(groups.as_ref(), bytes).await;
        }
        let question = Question::Memory(u64::try_from(bytes).unwrap_or(u64::MAX));
        // A worker that ends receives the new value when it is started again.
        let _ = session.ask(&question, None).await;
        if !grows {
            limit(groups.as_ref(), bytes).await;
        }
    }
}

async fn limit(groups: Option<&Arc<ProcessGroups>>, bytes: usize) {
    let Some(groups) = groups.cloned() else {
        return;
    };
    // The kernel may have to take memory back first.
    let limited = tokio::task::spawn_blocking(move || groups.set_memory(bytes)).await;
    if let Ok(Err(reason)) = limited {
        tracing::warn!("until the process that runs plugins is started again, {reason}");
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

    use super::*;
    use crate::frames::{FrameReader, Frames};
    use crate::notes::{self, Notes};
    use crate::socket;
    use crate::wire::{MOST_OF_HOST, Note, Reply};

    /// Answers questions about memory in place of a worker, and passes on each with the limit of its group by then.
    async fn answer(notes: Notes, limit: PathBuf, seen: UnboundedSender<(u64, String)>) {
        while let Some((note, descriptors)) = notes.receive().await.unwrap() {
            assert!(matches!(note, Note::Conversation { .. }), "{note:?}");
            let end = descriptors.into_iter().next().unwrap();
            let (read, mut write) = socket::halves(end).unwrap();
            let mut reader = FrameReader::new(read, MOST_OF_HOST);
            while let Ok(Some(Question::Memory(bytes))) = reader.message().await {
                let limit = fs::read_to_string(&limit).unwrap();
                seen.send((bytes, limit)).unwrap();
                let reply = Frames::message(&Reply::Done).unwrap();
                write.write_all(reply.bytes()).await.unwrap();
            }
        }
    }

    #[tokio::test]
    async fn a_control_group_gets_more_before_its_process_and_less_after_it() {
        let folder = tempfile::tempdir().unwrap();
        let limit = folder.path().join("memory.max");
        fs::write(&limit, "the first").unwrap();
        let groups = Arc::new(ProcessGroups::from_folder(folder.path(), 64 << 20));
        let (notes, others) = notes::pair().unwrap();
        let (sender, mut seen) = unbounded_channel();
        let others = Notes::new(others).unwrap();
        tokio::spawn(answer(others, limit.clone(), sender));
        let session = Session::new(1, notes, Vec::new(), Arc::downgrade(&groups));
        let session = Arc::new(session);
        let memory = InstanceMemory::new(64 << 20);

        assert!(memory.set(256 << 20) && !memory.set(256 << 20));
        memory.give(&session).await;
        let with_overhead = ((256_u64 + 64) << 20).to_string();
        assert_eq!(seen.recv().await, Some((256 << 20, with_overhead.clone())));

        assert!(memory.set(100 << 20));
        memory.give(&session).await;
        assert_eq!(seen.recv().await, Some((100 << 20, with_overhead)));
        let now = fs::read_to_string(&limit).unwrap();
        assert_eq!(now, ((100_u64 + 64) << 20).to_string());
    }
}
