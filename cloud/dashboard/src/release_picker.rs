//! A choice of the releases that devices of a fleet can be pinned to.

use maud::{Markup, html};
use serde::Deserialize;

use super::problem::PageResult;
use super::show::{exact, release_name};
use super::visitor::SessionUser;

/// Releases to choose from: the latest.
const MOST: usize = 100;

/// The latest releases of a fleet that succeeded and were not invalidated since.
pub(crate) struct ReleasePicker(Vec<Release>);

#[derive(Deserialize)]
struct Release {
    id: i64,
    commit: String,
    raw_version: String,
    created_at: String,
}

impl ReleasePicker {
    /// # Errors
    /// Where the database fails.
    pub(crate) async fn of(visitor: &SessionUser, fleet: i64) -> PageResult<Self> {
        let query = format!(
            "$select=id,commit,raw_version,created_at&$filter=belongs_to__application eq {fleet} \
             and status eq 'success' and is_invalidated eq false&$orderby=created_at desc&$top={MOST}"
        );
        let releases = visitor.rows("/release", &query).await?;
        Ok(ReleasePicker(releases))
    }

    /// The options of the choice. The selected release has one even if it is not among the latest.
    pub(crate) fn options(&self, selected: Option<i64>) -> Markup {
        let is_listed = |id: &i64| self.0.iter().any(|release| release.id == *id);
        html! {
            @for release in &self.0 {
                option value=(release.id) selected[selected == Some(release.id)] {
                    (release_name(&release.commit, &release.raw_version)) ", " (exact(&release.created_at))
                }
            }
            @if let Some(other) = selected.filter(|id| !is_listed(id)) {
                option value=(other) selected { "Release " (other) }
            }
        }
    }
}
