//! Fleets (docs/spec/cloud.md#model-fleet, docs/spec/cloud.md#rules).

use resources::StoredValue;

use super::{installs, system_release, tracking};
use crate::dialect::Dialect;
use crate::statement::sql;
use crate::write::{Change, WriteError, WriteResult, Writer, altering};

pub(super) async fn before_create(writer: &mut Writer<'_>, change: &mut Change) -> WriteResult {
    if change.number("should_be_running__release").is_some() {
        return Err(WriteError::refused(
            "`should_be_running__release`: a new fleet has no release yet",
        ));
    }
    change
        .new
        .set("should_track_latest_release", StoredValue::Boolean(true));
    if change.number("application_type").is_none() {
        let default = sql("SELECT id FROM application_type WHERE slug = 'default'");
        let default = writer.transaction.id(&default).await?.ok_or_else(|| {
            WriteError::Broken("there is no type of fleet with the slug `default`".to_owned())
        })?;
        change.new.set_number("application_type", default);
    }
    give_slug(writer, change).await
}

pub(super) async fn before_change(writer: &mut Writer<'_>, change: &mut Change) -> WriteResult {
    if change.alters_any(&["app_name", "organization"]) {
        give_slug(writer, change).await?;
    }
    if change.alters("is_for__device_type") {
        same_architecture(writer, change).await?;
    }
    if change.alters("application_type") {
        fits_type(writer, change).await?;
    }
    let tracks = change.flag("should_track_latest_release");
    if tracks
        && change.alters("should_track_latest_release")
        && !change.new.has("should_be_running__release")
        && let Some(latest) = tracking::latest(writer, change.id).await?
    {
        change.new.set_number("should_be_running__release", latest);
    }
    if change.alters("should_be_running__release")
        && let Some(release) = change.number("should_be_running__release")
    {
        let fleet = Some(change.id);
        can_run(writer, release, fleet, "should_be_running__release").await?;
    }
    Ok(())
}

pub(super) async fn after_change(writer: &mut Writer<'_>, changes: &[Change]) -> WriteResult {
    let retargeted = altering(changes, &["should_be_running__release"]);
    if !retargeted.is_empty() {
        installs::create_for_fleets(writer, &retargeted).await?;
    }
    let moved_fleets = altering(changes, &["organization"]);
    if !moved_fleets.is_empty() {
        system_release::drop_those_of_strangers(writer, Some(&moved_fleets)).await?;
    }
    Ok(())
}

/// Checks that a target is a successful release of the fleet, draft or not, tested or not
/// (docs/spec/cloud.md#rule-pins).
pub(super) async fn can_run(
    writer: &mut Writer<'_>,
    release: i64,
    fleet: Option<i64>,
    field: &str,
) -> WriteResult {
    // The release stays unchanged until this transaction ends: a change of it checks which devices run it.
    let lock = match writer.transaction.dialect() {
        Dialect::Sqlite => "",
        Dialect::Postgres => " FOR SHARE",
    };
    let select = format!("SELECT status, belongs_to__application FROM release WHERE id = ?{lock}");
    let row = writer.transaction.row(&sql(select).with(release)).await?;
    let why = match row {
        Some(row) if row.number(1)? != fleet => "it belongs to another fleet",
        Some(row) if row.some_text(0)? != "success" => "it is not successful",
        Some(_) => return Ok(()),
        None => "there is none",
    };
    Err(WriteError::Refused(format!(
        "`{field}`: release {release} cannot be run there: {why}"
    )))
}

/// Sets the slug: the handle of the organization, `/`, the name; in lower case.
async fn give_slug(writer: &mut Writer<'_>, change: &mut Change) -> WriteResult {
    let handle = sql("SELECT handle FROM organization WHERE id = ?")
        .with(change.number("organization").unwrap_or_default());
    let row = writer.transaction.row(&handle).await?;
    let handle = row
        .ok_or_else(|| {
            WriteError::refused("`organization`: there is no organization with this id")
        })?
        .some_text(0)?;
    let name = change.text("app_name").unwrap_or_default();
    let slug = format!("{handle}/{name}").to_lowercase();
    change.new.set_text("slug", slug);
    Ok(())
}

/// Checks that the new device type has the same architecture, so that devices can still run existing releases.
async fn same_architecture(writer: &mut Writer<'_>, change: &Change) -> WriteResult {
    let types = [
        change.old.number("is_for__device_type").unwrap_or_default(),
        change.number("is_for__device_type").unwrap_or_default(),
    ];
    let architectures =
        sql("SELECT DISTINCT is_of__cpu_architecture FROM device_type WHERE id IN (?)")
            .with_all(&types);
    match writer.transaction.ids(&architectures).await?.len() {
        0 | 1 => Ok(()),
        _ => Err(WriteError::refused(
            "`is_for__device_type` must have the same architecture as the one before",
        )),
    }
}

/// Checks that a fleet with releases of several services does not get a type for one service
/// (docs/spec/cloud.md#rule-fleet-type).
async fn fits_type(writer: &mut Writer<'_>, change: &Change) -> WriteResult {
    let several = sql(
        "SELECT r.id FROM release AS r JOIN release_image AS i ON i.is_part_of__release = r.id \
         WHERE r.belongs_to__application = ? AND EXISTS (SELECT 1 FROM application_type AS t \
         WHERE t.id = ? AND t.supports_multicontainer = FALSE) \
         GROUP BY r.id HAVING count(*) > 1 LIMIT 1",
    )
    .with(change.id)
    .with(change.number("application_type").unwrap_or_default());
    match writer.transaction.id(&several).await? {
        None => Ok(()),
        Some(release) => Err(WriteError::Refused(format!(
            "`application_type`: fleets of this type have one image per release, and release {release} has several"
        ))),
    }
}
