//! How often what devices should run has changed: numbers that only grow, told apart by device and by fleet.
//!
//! They are raised in the transaction that makes the change, out of its effects. So whoever keeps something
//! that was made from these rows, in whichever replica, learns from one look at its numbers whether it still
//! holds.

use sea_query::{Alias, Expr, ExprTrait, OnConflict, Query};

use crate::effect::Effect;
use crate::error::DataError;
use crate::names::GENERATIONS;
use crate::record::AT_ONCE;
use crate::statement::InternalStatement;
use crate::transaction::Transaction;

/// What `kind` says of a device's number.
pub const OF_DEVICE: &str = "device";
/// What `kind` says of a fleet's number.
pub const OF_FLEET: &str = "application";

/// Raises the numbers of all that the effects name.
pub(crate) async fn raise(
    transaction: &mut Transaction,
    effects: &[Effect],
) -> Result<(), DataError> {
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
    for named in named.chunks(AT_ONCE) {
        let mut insert = Query::insert()
            .into_table(Alias::new(GENERATIONS))
            .columns(["kind", "row_id", "generation"].map(Alias::new))
            .on_conflict(
                OnConflict::columns(["kind", "row_id"].map(Alias::new))
                    .value(
                        Alias::new("generation"),
                        Expr::col((Alias::new(GENERATIONS), Alias::new("generation"))).add(1_i64),
                    )
                    .to_owned(),
            )
            .take();
        for (kind, id) in named {
            insert.values_panic([(*kind).into(), (*id).into(), 1_i64.into()]);
        }
        transaction.execute(&InternalStatement(&insert)).await?;
    }
    Ok(())
}
