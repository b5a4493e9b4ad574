//! Revisions of final releases (docs/spec/cloud.md#rule-finalize).

use std::collections::HashMap;

use resources::ReleaseVersion;

use crate::statement::sql;
use crate::write::{Change, WriteError, WriteResult, Writer};

/// The releases among which one is numbered.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ReleaseLine {
    fleet: i64,
    core: [i64; 3],
    prerelease: String,
    variant: String,
}

/// The fields that define the line.
const LINE: [&str; 6] = [
    "belongs_to__application",
    "semver_major",
    "semver_minor",
    "semver_patch",
    "semver_prerelease",
    "variant",
];

/// Numbers releases that become final, and final ones that move to another line: from 0, each one more than the
/// greatest before. The caller must have locked the fleets.
pub(super) async fn give_revisions(writer: &mut Writer<'_>, changes: &mut [Change]) -> WriteResult {
    let now = writer.now();
    // Releases that were already final keep their order; those that become final now follow, by their ids.
    let mut order: Vec<usize> = (0..changes.len()).collect();
    order.sort_by_key(|at| {
        let change = &changes[*at];
        let finalized = change.old.number("is_finalized_at__date");
        (finalized.unwrap_or(i64::MAX), change.id)
    });
    let mut next: HashMap<ReleaseLine, i64> = HashMap::new();
    for at in order {
        let change = &mut changes[at];
        let was_final = change.old.number("revision").is_some();
        let is_new = change.id == 0;
        // A new release is final unless the request specifies otherwise.
        let becomes_final = !was_final && change.inputs.flag("is_final").unwrap_or(is_new);
        let moves = was_final && change.alters_any(&LINE);
        if !becomes_final && !moves {
            if was_final && change.inputs.text("semver").is_some() {
                let revision = change.old.number("revision").unwrap_or_default();
                check_requested_revision(change, revision)?;
            }
            continue;
        }
        let line = line(change);
        let revision = match next.get(&line) {
            Some(revision) => *revision,
            None => first_free(writer, &line).await?,
        };
        next.insert(line, revision + 1);
        check_requested_revision(change, revision)?;
        change.new.set_number("revision", revision);
        if becomes_final {
            change.new.set_number("is_finalized_at__date", now);
        }
    }
    Ok(())
}

fn line(change: &Change) -> ReleaseLine {
    let number = |field: &str| change.number(field).unwrap_or_default();
    let text = |field: &str| change.text(field).unwrap_or_default().to_owned();
    ReleaseLine {
        fleet: number("belongs_to__application"),
        core: [
            number("semver_major"),
            number("semver_minor"),
            number("semver_patch"),
        ],
        prerelease: text("semver_prerelease"),
        variant: text("variant"),
    }
}

async fn first_free(writer: &mut Writer<'_>, line: &ReleaseLine) -> WriteResult<i64> {
    let [major, minor, patch] = line.core;
    let greatest = sql(
        "SELECT max(revision) FROM release WHERE belongs_to__application = ? \
         AND semver_major = ? AND semver_minor = ? AND semver_patch = ? \
         AND semver_prerelease = ? AND variant = ?",
    )
    .with(line.fleet)
    .with(major)
    .with(minor)
    .with(patch)
    .with(line.prerelease.as_str())
    .with(line.variant.as_str());
    let greatest = writer.transaction.id(&greatest).await?;
    Ok(greatest.map_or(0, |revision| revision + 1))
}

/// Checks `+rev4` in a requested version, which must be the actual revision.
fn check_requested_revision(change: &Change, revision: i64) -> WriteResult {
    let version = ReleaseVersion {
        build: change.text("semver_build").unwrap_or_default().to_owned(),
        ..ReleaseVersion::default()
    };
    match version.requested_revision() {
        Some(desired) if desired != revision => Err(WriteError::Refused(format!(
            "`semver`: it requests revision {desired}, but the next revision is {revision}"
        ))),
        _ => Ok(()),
    }
}
