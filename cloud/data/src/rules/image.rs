//! Images, and releases that use them (docs/spec/cloud.md#model-image, docs/spec/cloud.md#rule-releases).

use std::collections::BTreeSet;

use super::installs;
use crate::random;
use crate::statement::sql;
use crate::write::{Change, WriteError, WriteResult, Writer};

/// How often a random location is tried before giving up.
const ATTEMPTS: u8 = 5;

pub(super) async fn before_create(writer: &mut Writer<'_>, change: &mut Change) -> WriteResult {
    check(change)?;
    for _ in 0..ATTEMPTS {
        let location = format!("{}/v2/{}", writer.environment.registry, random::digits()?);
        let existing = sql("SELECT id FROM image WHERE is_stored_at__image_location = ?")
            .with(location.as_str());
        if writer.transaction.id(&existing).await?.is_none() {
            change
                .new
                .set_text("is_stored_at__image_location", location);
            return Ok(());
        }
    }
    Err(WriteError::Broken(
        "no free location was found for the image".to_owned(),
    ))
}

/// Checks that a successful image has the time of its push.
pub(super) fn check(change: &Change) -> WriteResult {
    if change.text("status") == Some("success") && change.number("push_timestamp").is_none() {
        return Err(WriteError::refused(
            "`push_timestamp` is required for an image whose status is `success`",
        ));
    }
    Ok(())
}

/// Checks that a release may have one more image.
pub(super) async fn before_use(writer: &mut Writer<'_>, change: &mut Change) -> WriteResult {
    let release = change.number("is_part_of__release").unwrap_or_default();
    let single = sql("SELECT count(*) FROM release_image AS i \
         JOIN release AS r ON r.id = i.is_part_of__release \
         JOIN application AS a ON a.id = r.belongs_to__application \
         JOIN application_type AS t ON t.id = a.application_type \
         WHERE r.id = ? AND t.supports_multicontainer = FALSE")
    .with(release);
    match writer.transaction.id(&single).await? {
        None | Some(0) => Ok(()),
        Some(_) => Err(WriteError::refused(
            "releases of this type of fleet have one image at most",
        )),
    }
}

/// Adds the service to the devices that run the release.
pub(super) async fn after_use(writer: &mut Writer<'_>, change: &Change) -> WriteResult {
    match change.number("is_part_of__release") {
        Some(release) => installs::create_for_release(writer, release).await,
        None => Ok(()),
    }
}

/// Returns the locations of these images in the registry.
pub(super) async fn locations(writer: &mut Writer<'_>, images: &[i64]) -> WriteResult<Vec<String>> {
    let select = sql("SELECT is_stored_at__image_location FROM image WHERE id IN (?)");
    let rows = writer.transaction.rows_about(images, select).await?;
    let locations = rows.into_iter().map(|row| row.some_text(0));
    Ok(locations.collect::<Result<_, _>>()?)
}

/// Returns the images that are used only by these releases, which are about to be deleted. Images of services of other
/// fleets than the release's are not included: anyone who may see an image can use it in their own release.
pub(super) async fn find_unshared_images(
    writer: &mut Writer<'_>,
    releases: &BTreeSet<i64>,
) -> WriteResult<Vec<i64>> {
    let ids: Vec<i64> = releases.iter().copied().collect();
    let own = sql("SELECT DISTINCT i.image FROM release_image AS i \
         JOIN release AS r ON r.id = i.is_part_of__release \
         JOIN image AS m ON m.id = i.image \
         JOIN service AS s ON s.id = m.is_a_build_of__service \
         WHERE r.id IN (?) AND s.application = r.belongs_to__application");
    let mut images = BTreeSet::from_iter(writer.transaction.ids_about(&ids, own).await?);
    let all: Vec<i64> = images.iter().copied().collect();
    let uses = sql("SELECT image, is_part_of__release FROM release_image WHERE image IN (?)");
    for row in writer.transaction.rows_about(&all, uses).await? {
        if !releases.contains(&row.id(1)?) {
            images.remove(&row.id(0)?);
        }
    }
    Ok(images.into_iter().collect())
}
