//! The format of messages between replicas. Incoming messages count as hostile until they are parsed here.

use async_nats::Message;
use data::Effect;
use serde::{Deserialize, Serialize};

/// Row numbers in one message: below 256 kB, of the megabyte that servers accept.
const AT_ONCE: usize = 2000;
/// Maximum bytes of an incoming message.
const LONGEST: usize = 1 << 20;

/// A message from one replica to all of them, itself included.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Envelope {
    /// The replica, by a name that it generated when it started.
    pub(super) from: String,
    pub(super) what: Payload,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Payload {
    /// The effects of a transaction.
    Effects(Vec<Effect>),
    /// A device opened a tunnel to this replica at this time (milliseconds since the epoch): older tunnels are broken
    /// or will be.
    Arrived { device: i64, at: i64 },
    /// This replica connected, for the `number`th time; earlier messages may have been `lost`.
    Connected { number: u64, lost: bool },
}

impl Envelope {
    /// Parses a message of ours; none if it is not one.
    pub(super) fn read(message: &Message) -> Option<Self> {
        if message.payload.len() > LONGEST {
            return None;
        }
        serde_json::from_slice(&message.payload).ok()
    }
}

/// Splits effects into messages. Images that are no longer needed are left out: the replica that released them handles
/// them.
pub(super) fn pieces(effects: &[Effect]) -> Vec<Payload> {
    let mut pieces = Vec::new();
    let mut waiting = Vec::new();
    let mut room = AT_ONCE;
    for effect in effects {
        for effect in cut(effect) {
            let size = size(&effect);
            if size > room {
                pieces.push(Payload::Effects(std::mem::take(&mut waiting)));
                room = AT_ONCE;
            }
            room -= size;
            waiting.push(effect);
        }
    }
    if !waiting.is_empty() {
        pieces.push(Payload::Effects(waiting));
    }
    pieces
}

fn cut(effect: &Effect) -> Vec<Effect> {
    fn each<T: Clone>(all: &[T], effect: fn(Vec<T>) -> Effect) -> Vec<Effect> {
        let some = all.chunks(AT_ONCE);
        some.map(|some| effect(some.to_vec())).collect()
    }
    match effect {
        Effect::DevicesChanged(ids) => each(ids, Effect::DevicesChanged),
        Effect::FleetsChanged(ids) => each(ids, Effect::FleetsChanged),
        Effect::DevicesGone(gone) => each(gone, Effect::DevicesGone),
        Effect::ActorsChanged(ids) => each(ids, Effect::ActorsChanged),
        Effect::ImagesGone(_) => Vec::new(),
    }
}

fn size(effect: &Effect) -> usize {
    match effect {
        Effect::DevicesChanged(ids) | Effect::FleetsChanged(ids) | Effect::ActorsChanged(ids) => {
            ids.len()
        }
        Effect::DevicesGone(gone) => gone.len(),
        Effect::ImagesGone(locations) => locations.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects_of_any_number_of_rows_go_in_messages_that_a_server_takes() {
        let many: Vec<i64> = (0..5000).map(|id| i64::MAX - id).collect();
        let effects = [
            Effect::ActorsChanged(vec![7]),
            Effect::DevicesChanged(many.clone()),
            Effect::ImagesGone(vec!["x".to_owned()]),
            Effect::FleetsChanged(vec![8]),
        ];
        let pieces = pieces(&effects);
        let mut found = Vec::new();
        for piece in &pieces {
            let text = serde_json::to_string(piece).expect("JSON");
            assert!(text.len() < 256 << 10, "{}", text.len());
            assert_eq!(
                serde_json::from_str::<Payload>(&text).expect("it back"),
                *piece
            );
            let Payload::Effects(effects) = piece else {
                panic!("effects")
            };
            found.extend(effects.iter().cloned());
        }
        let ids: Vec<i64> = found
            .iter()
            .filter_map(|effect| match effect {
                Effect::DevicesChanged(ids) => Some(ids.clone()),
                _ => None,
            })
            .flatten()
            .collect();
        assert_eq!(ids, many);
        assert_eq!(found.first(), effects.first());
        assert_eq!(found.last(), effects.last());
    }
}
