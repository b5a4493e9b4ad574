//! Releases (docs/spec/cloud.md#rule-finalize, docs/spec/cloud.md#rule-releases).

use resources::{ReleaseVersion, StoredValue};

use super::numbering;
use crate::statement::sql;
use crate::write::{Change, WriteError, WriteResult, Writer, targets};

pub(super) async fn before_create(writer: &mut Writer<'_>, change: &mut Change) -> WriteResult {
    if let Some(user) = writer.user() {
        change.new.set_number("is_created_by__user", user);
    }
    before_writing(writer, std::slice::from_mut(change)).await
}

pub(super) async fn before_change(writer: &mut Writer<'_>, changes: &mut [Change]) -> WriteResult {
    for change in changes.iter_mut() {
        let was_final = change.old.number("revision").is_some();
        if was_final && change.inputs.flag("is_final") == Some(false) {
            return Err(WriteError::refused(
                "`is_final`: a final release stays final",
            ));
        }
        change.new.set_number("update_timestamp", writer.now());
        let was_fit = change.old.text("status") == Some("success");
        if was_fit && change.alters_any(&["status", "belongs_to__application"]) {
            nobody_runs(writer, &[change.id]).await?;
        }
    }
    before_writing(writer, changes).await
}

async fn before_writing(writer: &mut Writer<'_>, changes: &mut [Change]) -> WriteResult {
    for change in changes.iter_mut() {
        take_version(change)?;
        if !change.flag("is_invalidated") {
            if change.new.text("invalidation_reason").is_some() {
                return Err(WriteError::refused(
                    "`invalidation_reason` is for releases that are invalidated",
                ));
            }
            if change.text("invalidation_reason").is_some() {
                change.new.set("invalidation_reason", StoredValue::Null);
            }
        }
    }
    // The following depends on the other releases of the fleet.
    let fleets = targets(&*changes, "belongs_to__application");
    writer.lock("application", &fleets).await?;
    for change in changes.iter() {
        alone_with_its_commit(writer, change).await?;
        alone_with_its_version(writer, change).await?;
    }
    numbering::give_revisions(writer, changes).await
}

/// Sets the fields that store the parts of `semver`.
fn take_version(change: &mut Change) -> WriteResult {
    let Some(text) = change.inputs.text("semver") else {
        return Ok(());
    };
    let version: ReleaseVersion = text
        .parse()
        .map_err(|error| WriteError::Refused(format!("`semver`: {error}")))?;
    for (field, text, most) in [
        ("semver_prerelease", &version.prerelease, 100),
        ("semver_build", &version.build, 50),
    ] {
        if text.len() > most {
            return Err(WriteError::Refused(format!(
                "`semver`: `{text}` has more than {most} characters"
            )));
        }
        change.new.set_text(field, text.as_str());
    }
    change.new.set_number("semver_major", version.major);
    change.new.set_number("semver_minor", version.minor);
    change.new.set_number("semver_patch", version.patch);
    Ok(())
}

/// Checks that a fleet has at most one successful release of a commit.
async fn alone_with_its_commit(writer: &mut Writer<'_>, change: &Change) -> WriteResult {
    let decides = ["status", "commit", "belongs_to__application"];
    if change.text("status") != Some("success") || !change.alters_any(&decides) {
        return Ok(());
    }
    let commit = change.text("commit").unwrap_or_default();
    let same = "\"commit\" = ?";
    match other(writer, change, same, commit).await? {
        None => Ok(()),
        Some(other) => Err(WriteError::Refused(format!(
            "`commit`: the fleet has a successful release of `{commit}` already, number {other}"
        ))),
    }
}

/// Checks that no two usable releases of a fleet have the same (deprecated) version name.
async fn alone_with_its_version(writer: &mut Writer<'_>, change: &Change) -> WriteResult {
    let decides = [
        "status",
        "release_version",
        "is_invalidated",
        "belongs_to__application",
    ];
    let Some(version) = change.text("release_version") else {
        return Ok(());
    };
    let counts = change.text("status") == Some("success") && !change.flag("is_invalidated");
    if !counts || !change.alters_any(&decides) {
        return Ok(());
    }
    let same = "release_version = ? AND is_invalidated = FALSE";
    match other(writer, change, same, version).await? {
        None => Ok(()),
        Some(other) => Err(WriteError::Refused(format!(
            "`release_version`: `{version}` is that of release {other} already"
        ))),
    }
}

/// Returns another successful release of the fleet with the same value.
async fn other(
    writer: &mut Writer<'_>,
    change: &Change,
    same: &str,
    value: &str,
) -> WriteResult<Option<i64>> {
    let other = sql(format!(
        "SELECT id FROM release WHERE belongs_to__application = ? AND status = 'success' AND id <> ? AND {same}"
    ))
    .with(change.number("belongs_to__application").unwrap_or_default())
    .with(change.id)
    .with(value);
    Ok(writer.transaction.id(&other).await?)
}

/// Checks that none of these releases is a target.
pub(super) async fn nobody_runs(writer: &mut Writer<'_>, ids: &[i64]) -> WriteResult {
    let fleet =
        sql("SELECT slug FROM application WHERE should_be_running__release IN (?)").with_all(ids);
    if let Some(row) = writer.transaction.row(&fleet).await? {
        return Err(WriteError::Refused(format!(
            "it is the target release of the fleet `{}`: set another target for that fleet first",
            row.some_text(0)?
        )));
    }
    let device = sql("SELECT uuid FROM device WHERE is_pinned_on__release IN (?)").with_all(ids);
    if let Some(row) = writer.transaction.row(&device).await? {
        return Err(WriteError::Refused(format!(
            "the device `{}` is pinned to it: unpin the device first",
            row.some_text(0)?
        )));
    }
    Ok(())
}
