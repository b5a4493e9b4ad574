//! The services on each device, to which variables of a service on a device belong
//! (docs/spec/cloud.md#rule-service-installs).

use crate::statement::{Sql, sql};
use crate::write::{WriteResult, Writer};

/// Returns a statement that creates missing rows, for a condition on devices `d` with their fleets `a` and on their
/// target releases `p.is_part_of__release`.
fn missing(condition: &str, now: i64) -> Sql {
    sql(format!(
        "INSERT INTO service_install (created_at, modified_at, device, installs__service) \
         SELECT DISTINCT CAST(? AS BIGINT), CAST(? AS BIGINT), d.id, i.is_a_build_of__service \
         FROM device AS d LEFT JOIN application AS a ON a.id = d.belongs_to__application \
         JOIN release_image AS p ON p.is_part_of__release IN \
         (coalesce(d.is_pinned_on__release, a.should_be_running__release), \
          d.should_be_managed_by__release, d.should_be_operated_by__release) \
         JOIN image AS i ON i.id = p.image \
         WHERE {condition} AND NOT EXISTS (SELECT 1 FROM service_install AS s \
         WHERE s.device = d.id AND s.installs__service = i.is_a_build_of__service) \
         ON CONFLICT DO NOTHING"
    ))
    .with(now)
    .with(now)
}

/// Creates the rows for the target of these fleets, on their devices that are not pinned.
pub(super) async fn create_for_fleets(writer: &mut Writer<'_>, fleets: &[i64]) -> WriteResult {
    let condition = "d.belongs_to__application IN (?) AND d.is_pinned_on__release IS NULL";
    make(writer, condition, fleets).await
}

/// Creates the rows for all target releases of these devices.
pub(super) async fn create_for_devices(writer: &mut Writer<'_>, devices: &[i64]) -> WriteResult {
    make(writer, "d.id IN (?)", devices).await
}

/// Creates the rows for a release, on all devices whose target it is.
pub(super) async fn create_for_release(writer: &mut Writer<'_>, release: i64) -> WriteResult {
    make(writer, "p.is_part_of__release IN (?)", &[release]).await
}

async fn make(writer: &mut Writer<'_>, condition: &str, ids: &[i64]) -> WriteResult {
    let insert = missing(condition, writer.now());
    Ok(writer.transaction.execute_about(ids, insert).await?)
}

/// Removes the services of a device, with their variables there, after it left a fleet; its images count as deleted.
pub(super) async fn leave_fleet(writer: &mut Writer<'_>, device: i64, fleet: i64) -> WriteResult {
    let services = sql("DELETE FROM service_install WHERE device = ? \
         AND installs__service IN (SELECT id FROM service WHERE application = ?)");
    let services = services.with(device).with(fleet);
    writer.transaction.execute(&services).await?;
    let images = sql(
        "UPDATE image_install SET status = 'deleted', download_progress = NULL, modified_at = ? \
         WHERE device = ? AND installs__image IN (SELECT i.id FROM image AS i \
         JOIN service AS s ON s.id = i.is_a_build_of__service WHERE s.application = ?)",
    );
    let images = images.with(writer.now()).with(device).with(fleet);
    writer.transaction.execute(&images).await?;
    Ok(())
}
