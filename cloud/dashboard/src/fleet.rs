//! A fleet's pages: its devices, its releases, its variables and its settings.

mod add_device;
mod devices;
mod releases;
mod settings;
mod together;
mod variables;

use axum::Router;
use maud::{Markup, html};
use resources::Method;
use serde::Deserialize;

use super::page::{Page, Section};
use super::problem::PageResult;
use super::show::badge;
use super::state::DashboardState;
use super::visitor::SessionUser;
pub(crate) use releases::build;

pub(super) fn routes() -> Router<DashboardState> {
    Router::new()
        .merge(devices::routes())
        .merge(add_device::routes())
        .merge(releases::routes())
        .merge(variables::routes())
        .merge(settings::routes())
        .merge(together::routes())
}

/// What every page of a fleet shows.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Fleet {
    pub(crate) id: i64,
    pub(crate) app_name: String,
    pub(crate) slug: String,
    pub(crate) is_public: bool,
    /// Whether the visitor may change it, and not just read it because it is public.
    #[serde(default)]
    pub(crate) may_change: bool,
    #[serde(rename = "is_for__device_type")]
    pub(crate) device_type: Vec<DeviceType>,
}

/// A device type.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct DeviceType {
    pub(crate) slug: String,
    pub(crate) name: String,
}

/// The pages of a fleet, in the order of their tabs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tab {
    Devices,
    Releases,
    Variables,
    Settings,
}

impl Tab {
    const ALL: [(Tab, &'static str, &'static str); 4] = [
        (Tab::Devices, "Devices", ""),
        (Tab::Releases, "Releases", "/releases"),
        (Tab::Variables, "Variables", "/variables"),
        (Tab::Settings, "Settings", "/settings"),
    ];
}

/// Fleets that devices can be moved to; so many are offered.
const DESTINATIONS: usize = 500;

/// A fleet that devices can be moved to.
#[derive(Debug, Deserialize)]
pub(crate) struct Destination {
    pub(crate) id: i64,
    pub(crate) app_name: String,
    pub(crate) slug: String,
}

impl Destination {
    /// Those that the visitor sees, by name; all but this one.
    pub(crate) async fn all(visitor: &SessionUser, but: Option<i64>) -> PageResult<Vec<Self>> {
        let but = but.map(|fleet| format!(" and not(id eq {fleet})"));
        let query = format!(
            "$select=id,app_name,slug&$filter=is_of__class eq 'fleet' and is_host eq false{}\
             &$orderby=app_name asc&$top={DESTINATIONS}",
            but.unwrap_or_default()
        );
        visitor.rows("/application", &query).await
    }

    /// As the options of a choice.
    pub(crate) fn options(all: &[Self], selected: Option<i64>) -> Markup {
        html! {
            @for fleet in all {
                option value=(fleet.id) selected[selected == Some(fleet.id)] {
                    (fleet.app_name) " (" (fleet.slug) ")"
                }
            }
        }
    }
}

impl Fleet {
    /// The fleet of a number.
    ///
    /// # Errors
    /// 404 where the visitor does not see it.
    pub(crate) async fn find(visitor: &SessionUser, id: i64) -> PageResult<Self> {
        let query =
            "$select=id,app_name,slug,is_public&$expand=is_for__device_type($select=slug,name)";
        let path = format!("/application({id})");
        let mut fleet: Fleet = visitor.row(&path, query).await?;
        fleet.may_change = visitor.may("application", id, Method::Update).await?;
        Ok(fleet)
    }

    /// Where its pages are.
    pub(crate) fn place(&self) -> String {
        format!("/dashboard/fleets/{}", self.id)
    }

    /// One of its pages.
    pub(crate) fn page<'a>(
        &'a self,
        visitor: &'a SessionUser,
        tab: Tab,
        live: Option<String>,
        main: &Markup,
    ) -> Page<'a> {
        let main = html! {
            header.head {
                div {
                    h1 { (self.app_name) @if self.is_public { " " (badge("none", "Public")) } }
                    p.faint {
                        (self.slug)
                        @for kind in &self.device_type { " · " (kind.name) }
                    }
                }
                @if self.may_change && tab == Tab::Devices {
                    a.button.primary href={ (self.place()) "/add-device" } { "Add a device" }
                }
            }
            nav.tabs aria-label="Pages of this fleet" {
                @for (one, name, below) in Tab::ALL {
                    a href={ (self.place()) (below) } aria-current=[(one == tab).then_some("page")] { (name) }
                }
            }
            (main)
        };
        Page {
            visitor,
            section: Section::Fleets,
            title: &self.app_name,
            above: vec![("Fleets", "/dashboard".to_owned())],
            live,
            main,
        }
    }
}
