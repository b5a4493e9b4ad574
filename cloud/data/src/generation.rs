//! How often what devices should run has changed: numbers that only grow, told apart by device and by fleet.
//!
//! They are raised in the transaction that makes the change, out of its effects. So whoever keeps something
//! that was made from these rows, in whichever replica, learns from one look at its numbers whether it still
//! holds.

use crate::effect::Effect;
use crate::statement::{AT_ONCE, Sql, sql};

/// What `kind` says of a device's number.
pub const OF_DEVICE: &str = "device";
/// What `kind` says of a fleet's number.
pub const OF_FLEET: &str = "application";

/// Statements that raise the numbers of all that the effects name.
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
    // In one order, whoever raises them: nobody waits for somebody who waits for them.
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
