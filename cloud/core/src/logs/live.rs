//! Live lines, for the followers of devices in this replica.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::broadcast::{Receiver, Sender, channel};

use super::line::LogLine;

/// How many groups of lines a follower may be behind.
pub(super) const BEHIND: usize = 256;

/// Lines that were stored together.
pub(super) type Lines = Arc<[LogLine]>;

/// Live lines.
#[derive(Default)]
pub(super) struct LiveLines {
    followed: Mutex<HashMap<i64, Sender<Lines>>>,
}

impl LiveLines {
    /// Passes lines of a device on to its followers, without waiting for them.
    pub(super) fn publish(&self, device: i64, lines: &Lines) {
        let mut followed = self.followed.lock();
        if let Some(sender) = followed.get(&device)
            && sender.send(lines.clone()).is_err()
        {
            // Nobody follows it any more.
            followed.remove(&device);
        }
    }

    /// Follows the lines of a device, from now on.
    pub(super) fn follow(&self, device: i64) -> LineSubscription {
        let mut followed = self.followed.lock();
        let sender = followed.entry(device).or_insert_with(|| channel(BEHIND).0);
        LineSubscription::new(sender)
    }

    /// Removes devices that nobody follows any more.
    pub(super) fn tidy(&self) {
        let mut followed = self.followed.lock();
        followed.retain(|_, sender| sender.receiver_count() > 0);
    }
}

/// The lines of a device, as they arrive.
pub struct LineSubscription {
    lines: Receiver<Lines>,
}

/// An event of a followed device.
#[derive(Debug)]
pub enum LineEvent {
    Lines(Lines),
    /// This many groups of lines were missed.
    Lagged(u64),
}

impl LineSubscription {
    /// Subscribes to the lines that are sent from now on.
    pub(super) fn new(sender: &Sender<Lines>) -> Self {
        LineSubscription {
            lines: sender.subscribe(),
        }
    }

    /// Returns the next event; none at the end. Nothing is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<LineEvent> {
        match self.lines.recv().await {
            Ok(lines) => Some(LineEvent::Lines(lines)),
            Err(RecvError::Lagged(missed)) => Some(LineEvent::Lagged(missed)),
            Err(RecvError::Closed) => None,
        }
    }

    /// Returns an event that has already arrived, without waiting.
    pub fn ready(&mut self) -> Option<LineEvent> {
        match self.lines.try_recv() {
            Ok(lines) => Some(LineEvent::Lines(lines)),
            Err(TryRecvError::Lagged(missed)) => Some(LineEvent::Lagged(missed)),
            Err(TryRecvError::Empty | TryRecvError::Closed) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(message: &str) -> Lines {
        vec![LogLine::system(message.to_owned(), 1)].into()
    }

    #[tokio::test]
    async fn a_slow_reader_learns_that_lines_are_missing_and_delays_nobody() {
        let live = LiveLines::default();
        live.publish(1, &lines("nobody hears this"));
        let mut slow = live.follow(1);
        let mut other = live.follow(2);
        for number in 0..BEHIND + 10 {
            live.publish(1, &lines(&number.to_string()));
        }
        let Some(LineEvent::Lagged(missed)) = slow.next().await else {
            panic!("a notice")
        };
        assert!(missed >= 10, "{missed}");
        let Some(LineEvent::Lines(next)) = slow.next().await else {
            panic!("lines")
        };
        assert_eq!(next[0].message, missed.to_string());
        assert!(other.ready().is_none(), "of another device");
        drop((slow, other));
        live.tidy();
        assert!(live.followed.lock().is_empty());
    }
}
