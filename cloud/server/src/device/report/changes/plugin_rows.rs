//! The rows of the plugins' fields of a device, compared with its report.

use std::collections::BTreeMap;

use cloud_core::cloud::Cloud;
use data::{DataError, SystemPurpose, Transaction};
use sea_query::{Alias, Expr, ExprTrait, OnConflict, Query};

use crate::device::report::plugin_fields::{PluginField, PluginFields, value_type};

/// Whether the report of a device differs from its rows.
pub(super) async fn differ(
    cloud: &Cloud,
    device: i64,
    reported: &PluginFields,
) -> Result<bool, DataError> {
    let select = SystemPurpose::Report.sql(
        "SELECT plugin, name, value, value_type, unit FROM device_plugin_field WHERE device = ?",
    );
    let mut stored = BTreeMap::new();
    for row in &cloud.database.rows(&select.with(device)).await? {
        let field = PluginField {
            value: row.some_text(2)?,
            value_type: value_type(&row.some_text(3)?),
            unit: row.text(4)?,
        };
        stored.insert((row.some_text(0)?, row.some_text(1)?), field);
    }
    Ok(stored != reported.0)
}

/// Replaces the rows of a device with the reported ones; unchanged rows keep the time of their last change.
pub(super) async fn write(
    transaction: &mut Transaction,
    device: i64,
    reported: &PluginFields,
    now: i64,
) -> Result<(), DataError> {
    // Reports of one device are written one after the other: if several were written at once, each would add its own
    // rows to those of the others, which it cannot see.
    let lock = SystemPurpose::Report
        .sql("UPDATE device SET modified_at = modified_at WHERE id = ?")
        .with(device);
    transaction.execute(&lock).await?;
    // Neither name can contain a slash.
    let names = reported.0.keys();
    let names = names.map(|(plugin, name)| format!("{plugin}/{name}"));
    let gone = Query::delete()
        .from_table(Alias::new("device_plugin_field"))
        .and_where(Expr::col(Alias::new("device")).eq(device))
        .and_where(Expr::cust("plugin || '/' || name").is_not_in(names))
        .take();
    let gone = SystemPurpose::Report.statement(gone);
    transaction.execute(&gone).await?;
    if reported.0.is_empty() {
        return Ok(());
    }
    let mut insert = Query::insert()
        .into_table(Alias::new("device_plugin_field"))
        .columns(
            [
                "created_at",
                "modified_at",
                "device",
                "plugin",
                "name",
                "value",
                "value_type",
                "unit",
            ]
            .map(Alias::new),
        )
        .on_conflict(
            OnConflict::columns(["device", "plugin", "name"].map(Alias::new))
                .update_columns(["modified_at", "value", "value_type", "unit"].map(Alias::new))
                .action_and_where(Expr::cust(
                    "device_plugin_field.value <> excluded.value \
                     OR device_plugin_field.value_type <> excluded.value_type \
                     OR coalesce(device_plugin_field.unit, '') <> coalesce(excluded.unit, '')",
                ))
                .to_owned(),
        )
        .take();
    for ((plugin, name), field) in &reported.0 {
        insert.values_panic([
            now.into(),
            now.into(),
            device.into(),
            plugin.as_str().into(),
            name.as_str().into(),
            field.value.as_str().into(),
            field.value_type.into(),
            Expr::val(sea_query::Value::String(field.unit.clone())),
        ]);
    }
    let insert = SystemPurpose::Report.statement(insert);
    transaction.execute(&insert).await?;
    Ok(())
}
