//! Select fields for devices: a fleet to move to, or a release of their fleet to be pinned to.

use maud::{Markup, html};
use serde::Deserialize;

use super::page_error::PageResult;
use super::rows::ReleaseName;
use super::session_user::SessionUser;
use super::show::exact;

/// The maximum number of fleets to choose from, by name.
const FLEETS: usize = 500;
/// The maximum number of releases to choose from: the latest ones.
const RELEASES: usize = 100;

/// Fleets that the user sees.
pub(crate) struct FleetPicker(Vec<FleetOption>);

#[derive(Deserialize)]
struct FleetOption {
    id: i64,
    app_name: String,
    slug: String,
}

impl FleetPicker {
    /// Loads all of them except one.
    ///
    /// # Errors
    /// If the database fails.
    pub(crate) async fn load(user: &SessionUser, but: Option<i64>) -> PageResult<Self> {
        let but = but.map(|fleet| format!(" and not(id eq {fleet})"));
        let query = format!(
            "$select=id,app_name,slug&$filter=is_of__class eq 'fleet' and is_host eq false{}\
             &$orderby=app_name asc&$top={FLEETS}",
            but.unwrap_or_default()
        );
        Ok(FleetPicker(user.rows("/application", &query).await?))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The options of the choice.
    pub(crate) fn options(&self, selected: Option<i64>) -> Markup {
        html! {
            @for fleet in &self.0 {
                option value=(fleet.id) selected[selected == Some(fleet.id)] {
                    (fleet.app_name) " (" (fleet.slug) ")"
                }
            }
        }
    }
}

/// The latest releases of a fleet that succeeded and have not been invalidated since.
pub(crate) struct ReleasePicker(Vec<ReleaseOption>);

#[derive(Deserialize)]
struct ReleaseOption {
    #[serde(flatten)]
    name: ReleaseName,
    created_at: String,
}

impl ReleasePicker {
    /// # Errors
    /// If the database fails.
    pub(crate) async fn load(user: &SessionUser, fleet: i64) -> PageResult<Self> {
        let query = format!(
            "$select=id,commit,raw_version,created_at&$filter=belongs_to__application eq {fleet} \
             and status eq 'success' and is_invalidated eq false&$orderby=created_at desc&$top={RELEASES}"
        );
        let releases = user.rows("/release", &query).await?;
        Ok(ReleasePicker(releases))
    }

    /// The options of the choice. The selected release has one even if it is not among the latest.
    pub(crate) fn options(&self, selected: Option<i64>) -> Markup {
        let is_listed = |id: &i64| self.0.iter().any(|release| release.name.id == *id);
        html! {
            @for release in &self.0 {
                option value=(release.name.id) selected[selected == Some(release.name.id)] {
                    (release.name.text()) ", " (exact(&release.created_at))
                }
            }
            @if let Some(other) = selected.filter(|id| !is_listed(id)) {
                option value=(other) selected { "Release " (other) }
            }
        }
    }
}
