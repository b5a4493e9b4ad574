//! Live lines, to whoever follows a device in this replica.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::broadcast::{Receiver, Sender, channel};

use super::line::LogLine;

/// Groups of lines that one who follows may be behind by.
pub(super) const BEHIND: usize = 256;

/// Lines that were kept together.
pub(super) type Lines = Arc<[LogLine]>;

/// Live lines.
#[derive(Default)]
pub(super) struct LiveLines {
    followed: Mutex<HashMap<i64, Sender<Lines>>>,
}

impl LiveLines {
    /// Passes lines of a device on. Nobody is waited for.
    pub(super) fn publish(&self, device: i64, lines: &Lines) {
        let mut followed = self.followed.lock();
        if let Some(sender) = followed.get(&device)
            && sender.send(lines.clone()).is_err()
        {
            // Nobody follows it any more.
            followed.remove(&device);
        }
    }

    /// Lines of a device, from now on.
    pub(super) fn follow(&self, device: i64) -> LineSubscription {
        let mut followed = self.followed.lock();
        let sender = followed.entry(device).or_insert_with(|| channel(BEHIND).0);
        LineSubscription::of(sender)
    }

    /// Forgets devices that nobody follows any more.
    pub(super) fn tidy(&self) {
        let mut followed = self.followed.lock();
        followed.retain(|_, sender| sender.receiver_count() > 0);
    }
}

/// Lines of a device, as they come.
pub struct LineSubscription {
    lines: Receiver<Lines>,
}

/// What comes next.
#[derive(Debug)]
pub enum LineEvent {
    Lines(Lines),
    /// So many groups of lines went by unread.
    Lagged(u64),
}

impl LineSubscription {
    /// Lines that are sent from now on.
    pub(super) fn of(sender: &Sender<Lines>) -> Self {
        LineSubscription {
            lines: sender.subscribe(),
        }
    }

    /// What comes next; none when nothing will. Nothing is lost where the future is dropped.
    pub async fn next(&mut self) -> Option<LineEvent> {
        match self.lines.recv().await {
            Ok(lines) => Some(LineEvent::Lines(lines)),
            Err(RecvError::Lagged(missed)) => Some(LineEvent::Lagged(missed)),
            Err(RecvError::Closed) => None,
        }
    }

    /// What is there already.
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
    async fn who_follows_slowly_is_told_and_holds_nobody_up() {
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
