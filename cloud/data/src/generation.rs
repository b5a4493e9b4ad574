//! How often the target state of devices has changed: numbers that only grow, per device and per fleet.
//!
//! They are incremented in the transaction of the change, based on its effects. So any replica that caches something
//! derived from these rows can tell by reading the numbers whether it is still valid.

use crate::effect::Effect;
use crate::statement::{AT_ONCE, Sql, sql};

/// The `kind` of a device's number.
pub const OF_DEVICE: &str = "device";
/// The `kind` of a fleet's number.
pub const OF_FLEET: &str = "application";

/// Returns statements that increment the numbers of everything named in the effects.
pub(crate) fn raising(effects: &[Effect]) -> Vec<Sql> {
    let mut named: Vec<(&str, i64)> = Vec::new();
    for effect in effects {
        match effect {
            Effect::DevicesChanged(ids) => named.extend(ids.iter().map(|id| (OF_DEVICE, *id))),
            Effect::FleetsChanged(ids) => named.extend(ids.iter().map(|id| (OF_FLEET, *id))),
            Effect::DevicesGone(gone) => named.extend(gone.iter().map(|gone| (OF_DEVICE, gone.id))),
            Effect::ActorsChanged(_) | Effect::ImagesGone(_) => {}
        }
    }
    // Always in the same order, so that transactions cannot deadlock.
    named.sort_unstable();
    named.dedup();
    let raising = named.chunks(AT_ONCE).map(|named| {
        let values = vec!["(?, ?, 1)"; named.len()].join(", ");
        let raise = sql(format!(
            "INSERT INTO state_generation (kind, row_id, generation) VALUES {values} \
             ON CONFLICT (kind, row_id) DO UPDATE SET generation = state_generation.generation + 1"
        ));
        let values = named.iter();
        values.fold(raise, |raise, (kind, id)| raise.with(*kind).with(*id))
    });
    raising.collect()
}
