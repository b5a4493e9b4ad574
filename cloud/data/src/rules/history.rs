//! How devices were, from one change to the next (cloud behaviour 1.14).

use resources::Taken;

use crate::record::{self, AT_ONCE, Record, stored};
use crate::statement::sql;
use crate::write::{Change, WriteError, Writer, known};

/// Fields of a device whose changes are kept.
const KEPT: [&str; 12] = [
    "belongs_to__application",
    "is_active",
    "is_running__release",
    "is_pinned_on__release",
    "is_managed_by__service_instance",
    "os_version",
    "os_variant",
    "supervisor_version",
    "is_of__device_type",
    "cpu_id",
    "should_be_managed_by__release",
    "uuid",
];

/// A device is there, or another than before.
pub(super) async fn keep(writer: &mut Writer<'_>, change: &Change) -> Result<(), WriteError> {
    if !change.alters_any(&KEPT) {
        return Ok(());
    }
    if !change.old.is_empty() {
        end(writer, &[change.id]).await?;
    }
    let history = known("device_history")?;
    let mut record = Record::default();
    for (_, field) in stored(history) {
        if KEPT.contains(&field.name) {
            record.set(field.name, change.will_be(field.name).clone());
        }
    }
    let now = writer.now();
    record.set_number("created_at", now);
    record.set_number("modified_at", now);
    record.set_number("tracks__device", change.id);
    record.set("tracks__actor", change.will_be("actor").clone());
    let actor = writer.actor().map_or(Taken::Null, Taken::Integer);
    record.set("is_created_by__actor", actor);
    record::insert(writer.transaction, history, &record).await?;
    Ok(())
}

/// These devices are no longer as they were.
pub(super) async fn end(writer: &mut Writer<'_>, devices: &[i64]) -> Result<(), WriteError> {
    let now = writer.now();
    let actor = sea_query::Value::BigInt(writer.actor());
    for devices in devices.chunks(AT_ONCE) {
        let update = sql(
            "UPDATE device_history SET end_timestamp = ?, modified_at = ?, is_ended_by__actor = ? \
             WHERE tracks__device IN (?) AND end_timestamp IS NULL",
        )
        .with(now)
        .with(now)
        .with(actor.clone())
        .with_all(devices);
        writer.transaction.execute(&update).await?;
    }
    Ok(())
}
