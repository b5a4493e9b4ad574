//! Frames from many senders on their way over one stream: written at once by the sender if there is room, and otherwise
//! by a task, in order.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::budget::BudgetPart;
use crate::frames::Frames;
use crate::socket::WriteHalf;
use crate::wire::PIECE;

/// How long frames that nothing waits for may be kept, so that others take them along.
const LATER: Duration = Duration::from_millis(2);

/// The frames of one end.
pub(crate) struct Outbox {
    state: Mutex<State>,
    /// Notified when the task has something to write.
    queued: Notify,
    /// Notified when the queue has become shorter.
    shorter: Notify,
}

struct State {
    queue: VecDeque<QueuedFrames>,
    /// How many bytes of the first entry are written.
    written: usize,
    /// `None` once the other end is gone, or while the task waits for room.
    write: Option<WriteHalf>,
    is_closed: bool,
    /// Whether the task should write without waiting for more.
    is_urgent: bool,
}

/// Frames that are not fully written.
struct QueuedFrames {
    frames: Frames,
    /// The parts of budgets that they take until they are.
    parts: Vec<BudgetPart>,
}

impl Outbox {
    /// Starts the task, which ends when this is closed. Must be called in a tokio runtime.
    pub(crate) fn start(write: WriteHalf) -> Arc<Outbox> {
        let outbox = Arc::new(Outbox {
            state: Mutex::new(State {
                queue: VecDeque::new(),
                written: 0,
                write: Some(write),
                is_closed: false,
                is_urgent: false,
            }),
            queued: Notify::new(),
            shorter: Notify::new(),
        });
        tokio::spawn(write_queued(Arc::clone(&outbox)));
        outbox
    }

    /// Writes these frames, now or as soon as there is room, and keeps their part of a budget until they are written.
    pub(crate) fn send(&self, frames: Frames, part: Option<BudgetPart>) {
        let mut state = self.state.lock();
        if state.is_closed {
            return;
        }
        state.push(frames, part);
        state.write_some();
        if !state.queue.is_empty() && !state.is_closed {
            state.is_urgent = true;
            self.queued.notify_one();
        }
    }

    /// Writes these frames with the next ones, or a little later.
    pub(crate) fn send_later(&self, frames: Frames) {
        let mut state = self.state.lock();
        if state.is_closed {
            return;
        }
        state.push(frames, None);
        self.queued.notify_one();
    }

    /// Like [`Self::send`], once fewer than `most` frames are waiting.
    pub(crate) async fn send_among(&self, most: usize, frames: Frames, part: BudgetPart) {
        loop {
            let mut shorter = std::pin::pin!(self.shorter.notified());
            shorter.as_mut().enable();
            let is_full = {
                let state = self.state.lock();
                state.queue.len() >= most && !state.is_closed
            };
            if !is_full {
                return self.send(frames, Some(part));
            }
            shorter.await;
        }
    }

    /// Returns how many frames are waiting.
    pub(crate) fn waiting(&self) -> usize {
        self.state.lock().queue.len()
    }

    /// Returns whether the other end is gone.
    pub(crate) fn is_closed(&self) -> bool {
        self.state.lock().is_closed
    }

    /// Stops writing.
    pub(crate) fn close(&self) {
        self.state.lock().close();
        self.queued.notify_one();
        self.shorter.notify_waiters();
    }
}

impl State {
    /// Queues frames after those that are waiting: small ones are combined into one piece, which is written at once.
    fn push(&mut self, frames: Frames, part: Option<BudgetPart>) {
        let is_begun = self.written > 0 && self.queue.len() == 1;
        let length = frames.bytes().len();
        match self.queue.back_mut() {
            Some(last) if !is_begun && last.frames.bytes().len() + length <= PIECE => {
                last.frames.append(&frames);
                last.parts.extend(part);
            }
            _ => self.queue.push_back(QueuedFrames {
                frames,
                parts: part.into_iter().collect(),
            }),
        }
    }

    /// Writes as much as there is room for, and nothing while the task waits for room.
    fn write_some(&mut self) {
        let Some(write) = &self.write else { return };
        while let Some(first) = self.queue.front() {
            let rest = first.frames.bytes().get(self.written..).unwrap_or_default();
            match write.try_write(rest) {
                Ok(length) if length < rest.len() => self.written += length,
                Ok(_) => {
                    self.queue.pop_front();
                    self.written = 0;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => return self.close(),
            }
        }
    }

    fn close(&mut self) {
        self.is_closed = true;
        self.queue.clear();
        self.write = None;
    }
}

/// The task.
async fn write_queued(outbox: Arc<Outbox>) {
    loop {
        outbox.queued.notified().await;
        let is_urgent = std::mem::take(&mut outbox.state.lock().is_urgent);
        if !is_urgent {
            tokio::time::sleep(LATER).await;
        }
        loop {
            let write = {
                let mut state = outbox.state.lock();
                state.write_some();
                if state.is_closed {
                    return outbox.shorter.notify_waiters();
                }
                if state.queue.is_empty() {
                    None
                } else {
                    // There is no room. Until there is, other frames are only queued.
                    state.write.take()
                }
            };
            outbox.shorter.notify_waiters();
            let Some(mut write) = write else { break };
            let room = write.room().await;
            let mut state = outbox.state.lock();
            match room {
                Ok(()) if !state.is_closed => state.write = Some(write),
                _ => {
                    state.close();
                    drop(state);
                    return outbox.shorter.notify_waiters();
                }
            }
        }
        if let Some(write) = &mut outbox.state.lock().write {
            write.has_room();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::CallBudget;
    use crate::frames::FrameReader;
    use crate::socket::{halves, pair};

    fn part() -> BudgetPart {
        let [own, all] = [CallBudget::for_plugin(), CallBudget::for_worker()];
        own.for_arguments(&all, 1).unwrap()
    }

    #[tokio::test]
    async fn frames_come_in_their_order_past_a_reader_that_is_slower() {
        let (one, other) = pair().unwrap();
        let (_keep, write) = halves(one).unwrap();
        let (read, _) = halves(other).unwrap();
        let outbox = Outbox::start(write);
        let message = |number: u32| Frames::message(&(number, vec![7_u8; 10_000])).unwrap();
        for number in 0..100 {
            match number % 3 {
                0 => outbox.send_later(message(number)),
                _ => outbox.send(message(number), None),
            }
        }
        assert!(outbox.waiting() > 0);
        let sending = tokio::spawn({
            let outbox = Arc::clone(&outbox);
            async move {
                for number in 100..200 {
                    outbox.send_among(4, message(number), part()).await;
                }
                outbox.send_later(message(200));
            }
        });
        let mut reader = FrameReader::new(read, 1 << 20);
        for expected in 0..=200 {
            let (number, _) = reader.message::<(u32, Vec<u8>)>().await.unwrap().unwrap();
            assert_eq!(number, expected);
        }
        sending.await.unwrap();
        assert_eq!(outbox.waiting(), 0);
    }

    #[tokio::test]
    async fn a_waiter_for_room_continues_once_the_other_end_is_gone() {
        let (one, other) = pair().unwrap();
        let (_keep, write) = halves(one).unwrap();
        let outbox = Outbox::start(write);
        let large = || Frames::message(&vec![7_u8; 4 << 20]).unwrap();
        outbox.send(large(), None);
        let waiting = tokio::spawn({
            let outbox = Arc::clone(&outbox);
            async move { outbox.send_among(1, large(), part()).await }
        });
        drop(other);
        waiting.await.unwrap();
        assert!(outbox.is_closed());
    }
}
