//! Fleets that track their latest release (docs/spec/cloud.md#rule-tracking).

use super::{affected, installs};
use crate::statement::sql;
use crate::write::{Change, WriteResult, Writer, targets};

/// Moves fleets that track their latest release to it, after releases were created or changed.
pub(super) async fn follow(writer: &mut Writer<'_>, changes: &[Change]) -> WriteResult {
    let counts = [
        "revision",
        "status",
        "is_invalidated",
        "is_passing_tests",
        "start_timestamp",
        "belongs_to__application",
    ];
    let counting = changes.iter().filter(|change| change.alters_any(&counts));
    let fleets = targets(counting, "belongs_to__application");
    writer.lock("application", &fleets).await?;
    for fleet in fleets {
        pick(writer, fleet).await?;
    }
    Ok(())
}

async fn pick(writer: &mut Writer<'_>, fleet: i64) -> WriteResult {
    let Some(latest) = latest(writer, fleet).await? else {
        return Ok(());
    };
    let update = sql(
        "UPDATE application SET should_be_running__release = ?, modified_at = ? \
         WHERE id = ? AND should_track_latest_release = TRUE \
         AND coalesce(should_be_running__release, -1) <> ?",
    )
    .with(latest)
    .with(writer.now())
    .with(fleet)
    .with(latest);
    if writer.transaction.execute(&update).await? > 0 {
        installs::create_for_fleets(writer, &[fleet]).await?;
        affected::fleets(writer, vec![fleet]);
    }
    Ok(())
}

/// Returns the release that a tracking fleet should run.
pub(super) async fn latest(writer: &mut Writer<'_>, fleet: i64) -> WriteResult<Option<i64>> {
    let latest = sql(
        "SELECT id FROM release WHERE belongs_to__application = ? AND status = 'success' \
         AND revision IS NOT NULL AND is_invalidated = FALSE AND is_passing_tests = TRUE \
         ORDER BY start_timestamp DESC, id DESC LIMIT 1",
    )
    .with(fleet);
    Ok(writer.transaction.id(&latest).await?)
}
