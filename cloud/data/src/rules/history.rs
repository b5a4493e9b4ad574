//! How devices were, from one change to the next (docs/spec/cloud.md#model-history).

use sea_query::{Alias, Expr, ExprTrait, Query, Value};

use crate::record::AT_ONCE;
use crate::statement::{InternalStatement, sql};
use crate::write::{Change, WriteError, Writer};

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

/// Devices are there, or others than before. Their rows are as they now are.
pub(super) async fn keep(writer: &mut Writer<'_>, changes: &[Change]) -> Result<(), WriteError> {
    let of = |change: &&Change| change.alters_any(&KEPT);
    let devices: Vec<i64> = changes.iter().filter(of).map(|change| change.id).collect();
    if devices.is_empty() {
        return Ok(());
    }
    end(writer, &devices).await?;
    let column = Alias::new;
    let mut columns = vec![
        column("created_at"),
        column("modified_at"),
        column("is_created_by__actor"),
        column("tracks__device"),
        column("tracks__actor"),
    ];
    columns.extend(KEPT.map(column));
    for devices in devices.chunks(AT_ONCE) {
        let mut select = Query::select();
        select
            .expr(Expr::val(writer.now()).cast_as(column("BIGINT")))
            .expr(Expr::val(writer.now()).cast_as(column("BIGINT")))
            .expr(Expr::val(Value::BigInt(writer.actor())).cast_as(column("BIGINT")))
            .columns(["id", "actor"].map(column))
            .columns(KEPT.map(column))
            .from(column("device"))
            .and_where(Expr::col(column("id")).is_in(devices.iter().copied()));
        let mut insert = Query::insert();
        insert
            .into_table(column("device_history"))
            .columns(columns.clone());
        insert
            .select_from(select)
            .map_err(|error| WriteError::Broken(error.to_string()))?;
        writer
            .transaction
            .execute(&InternalStatement(&insert))
            .await?;
    }
    Ok(())
}

/// These devices are no longer as they were.
pub(super) async fn end(writer: &mut Writer<'_>, devices: &[i64]) -> Result<(), WriteError> {
    let now = writer.now();
    let actor = Value::BigInt(writer.actor());
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
