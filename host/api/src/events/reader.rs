//! One reader: its position, its selection, and the bytes that it is sent.

use std::convert::Infallible;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use device_types::event::EventType;
use futures::{Stream, StreamExt};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Interval, MissedTickBehavior};

use super::{Events, includes};
use crate::caller::KeyScope;

/// The interval between two comments on an idle stream, so that both ends notice when the other has gone.
const HEARTBEAT: Duration = if cfg!(test) {
    Duration::from_millis(50)
} else {
    Duration::from_secs(15)
};
/// The maximum number of bytes that are sent at a time.
const PIECE: usize = 16 << 10;
/// Makes a client's library reconnect after this time, in milliseconds.
const COME_BACK_AFTER: &str = "retry: 2000\n\n";

/// The position from which a reader reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Position {
    /// Only new events.
    Now,
    /// The events after the one with this number.
    After(u64),
    /// All stored events: the last one that the reader has seen belongs to another run.
    Elsewhere,
}

/// The selection of events for a reader.
#[derive(Debug, Clone)]
pub(crate) struct Filter {
    pub(crate) scope: KeyScope,
    /// The types of events; `None` selects all.
    pub(crate) types: Option<Vec<EventType>>,
}

impl Position {
    /// Reads the position from the header `Last-Event-ID`.
    pub(crate) fn after(events: &Events, last: &str) -> Self {
        let newest = events.content().number;
        let number = last
            .split_once('-')
            .filter(|(epoch, _)| epoch.parse() == Ok(events.0.epoch))
            .and_then(|(_, number)| number.parse().ok())
            .filter(|number| *number <= newest);
        number.map_or(Position::Elsewhere, Position::After)
    }
}

/// Returns the body of a reader's stream, until it disconnects.
pub(crate) fn read(
    events: Events,
    from: Position,
    filter: Filter,
    place: OwnedSemaphorePermit,
) -> impl Stream<Item = Result<Bytes, Infallible>> + Send {
    // Subscribed before the position is looked up, so that no event is missed between the two.
    let newest = events.0.newest.subscribe();
    let (next, mut greeting) = match from {
        Position::Now => (events.content().number + 1, String::new()),
        Position::After(number) => (number + 1, String::new()),
        Position::Elsewhere => (events.content().oldest(), Events::gap(None)),
    };
    // The first bytes are sent at once: a client does not wait for a silent device.
    greeting.insert_str(0, COME_BACK_AFTER);
    let mut heartbeat = tokio::time::interval(HEARTBEAT);
    heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    heartbeat.reset();
    let reader = Reader {
        events,
        next,
        filter,
        newest,
        heartbeat,
        _place: place,
    };
    let greeting = futures::stream::iter([Ok(Bytes::from(greeting))]);
    greeting.chain(futures::stream::unfold(reader, |mut reader| async {
        let piece = reader.piece().await?;
        Some((Ok(piece), reader))
    }))
}

struct Reader {
    events: Events,
    /// The number of the first event that it has not received.
    next: u64,
    filter: Filter,
    newest: watch::Receiver<u64>,
    heartbeat: Interval,
    _place: OwnedSemaphorePermit,
}

impl Reader {
    /// Returns the next bytes, once there are any; `None` if there will be no more.
    async fn piece(&mut self) -> Option<Bytes> {
        loop {
            self.newest.borrow_and_update();
            let piece = self.take();
            if !piece.is_empty() {
                self.heartbeat.reset();
                return Some(piece);
            }
            tokio::select! {
                changed = self.newest.changed() => changed.ok()?,
                _ = self.heartbeat.tick() => return Some(Bytes::from_static(b":\n\n")),
            }
        }
    }

    /// Takes the available events, up to the size of a piece.
    fn take(&mut self) -> Bytes {
        let mut piece = BytesMut::new();
        let content = self.events.content();
        let oldest = content.oldest();
        if let Some(missed) = oldest.checked_sub(self.next).filter(|missed| *missed > 0) {
            piece.extend_from_slice(Events::gap(Some(missed)).as_bytes());
            self.next = oldest;
        }
        let passed = usize::try_from(self.next.saturating_sub(oldest)).unwrap_or(usize::MAX);
        for event in content.events.iter().skip(passed) {
            self.next = event.number + 1;
            let types = self.filter.types.as_ref();
            let is_selected = types.is_none_or(|types| types.contains(&event.kind));
            if is_selected && includes(event.audience, self.filter.scope) {
                piece.extend_from_slice(&event.frame);
            }
            if piece.len() >= PIECE {
                break;
            }
        }
        piece.freeze()
    }
}
