//! Which services devices have: what variables of a service on a device hang on
//! (docs/spec/cloud.md#rule-service-installs).

use crate::record::AT_ONCE;
use crate::statement::{Sql, sql};
use crate::write::{WriteError, Writer};

/// A statement that makes what is missing, for a condition on devices `d` with their fleets `a` and on the
/// releases `p.is_part_of__release` that they are to run.
macro_rules! missing {
    ($condition:literal) => {
        concat!(
            "INSERT INTO service_install (created_at, modified_at, device, installs__service) \
             SELECT DISTINCT CAST(? AS BIGINT), CAST(? AS BIGINT), d.id, i.is_a_build_of__service \
             FROM device AS d LEFT JOIN application AS a ON a.id = d.belongs_to__application \
             JOIN release_image AS p ON p.is_part_of__release IN \
             (coalesce(d.is_pinned_on__release, a.should_be_running__release), \
              d.should_be_managed_by__release, d.should_be_operated_by__release) \
             JOIN image AS i ON i.id = p.image \
             WHERE ",
            $condition,
            " AND NOT EXISTS (SELECT 1 FROM service_install AS s \
             WHERE s.device = d.id AND s.installs__service = i.is_a_build_of__service) \
             ON CONFLICT DO NOTHING"
        )
    };
}

/// For the target of these fleets, on their devices that are not pinned.
pub(super) async fn of_fleets(writer: &mut Writer<'_>, fleets: &[i64]) -> Result<(), WriteError> {
    for fleets in fleets.chunks(AT_ONCE) {
        let insert = sql(missing!(
            "d.belongs_to__application IN (?) AND d.is_pinned_on__release IS NULL"
        ));
        make(writer, insert, |insert| insert.with_all(fleets)).await?;
    }
    Ok(())
}

/// For all that these devices are to run.
pub(super) async fn of_devices(writer: &mut Writer<'_>, devices: &[i64]) -> Result<(), WriteError> {
    for devices in devices.chunks(AT_ONCE) {
        let insert = sql(missing!("d.id IN (?)"));
        make(writer, insert, |insert| insert.with_all(devices)).await?;
    }
    Ok(())
}

/// For a release, on all devices that are to run it.
pub(super) async fn of_release(writer: &mut Writer<'_>, release: i64) -> Result<(), WriteError> {
    let insert = sql(missing!("p.is_part_of__release = ?"));
    make(writer, insert, |insert| insert.with(release)).await
}

async fn make(
    writer: &mut Writer<'_>,
    insert: Sql,
    condition: impl FnOnce(Sql) -> Sql,
) -> Result<(), WriteError> {
    let now = writer.now();
    let insert = condition(insert.with(now).with(now));
    writer.transaction.execute(&insert).await?;
    Ok(())
}

/// A device left a fleet: its services go, with their variables there, and its images count as deleted.
pub(super) async fn leave_fleet(
    writer: &mut Writer<'_>,
    device: i64,
    fleet: i64,
) -> Result<(), WriteError> {
    let services = sql("DELETE FROM service_install WHERE device = ? \
         AND installs__service IN (SELECT id FROM service WHERE application = ?)");
    writer
        .transaction
        .execute(&services.with(device).with(fleet))
        .await?;
    let images = sql(
        "UPDATE image_install SET status = 'deleted', download_progress = NULL, modified_at = ? \
         WHERE device = ? AND installs__image IN (SELECT i.id FROM image AS i \
         JOIN service AS s ON s.id = i.is_a_build_of__service WHERE s.application = ?)",
    );
    let now = writer.now();
    writer
        .transaction
        .execute(&images.with(now).with(device).with(fleet))
        .await?;
    Ok(())
}
