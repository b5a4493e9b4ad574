//! The history of devices, from one change to the next (docs/spec/cloud.md#model-history).

use crate::statement::sql;
use crate::write::{Change, WriteResult, Writer, altering};

/// Fields of a device whose changes are recorded.
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

/// Records the new state of created or changed devices. Their rows must be up to date.
pub(super) async fn keep(writer: &mut Writer<'_>, changes: &[Change]) -> WriteResult {
    let devices = altering(changes, &KEPT);
    end(writer, &devices).await?;
    let fields = KEPT.join(", ");
    let insert = format!(
        "INSERT INTO device_history (created_at, modified_at, is_created_by__actor, tracks__device, tracks__actor, \
         {fields}) SELECT CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS BIGINT), id, actor, {fields} \
         FROM device WHERE id IN (?)"
    );
    let (now, actor) = (writer.now(), writer.actor());
    let insert = sql(insert).with(now).with(now).with(actor);
    Ok(writer.transaction.execute_about(&devices, insert).await?)
}

/// Ends the current entries of these devices.
pub(super) async fn end(writer: &mut Writer<'_>, devices: &[i64]) -> WriteResult {
    let (now, actor) = (writer.now(), writer.actor());
    let end = sql(
        "UPDATE device_history SET end_timestamp = ?, modified_at = ?, is_ended_by__actor = ? \
         WHERE tracks__device IN (?) AND end_timestamp IS NULL",
    );
    let end = end.with(now).with(now).with(actor);
    Ok(writer.transaction.execute_about(devices, end).await?)
}
