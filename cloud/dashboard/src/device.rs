//! A device's pages: how it is and what it does, its variables, its settings.

mod actions;
mod facts;
mod logs;
mod overview;
mod services;
mod settings;
mod variables;

use axum::Router;
use axum::extract::{FromRequestParts, Path};
use cloud_core::device::is_uuid;
use data::RowRight;
use http::request::Parts;
use maud::{Markup, html};
use resources::Method;
use serde::Deserialize;

use super::live::LiveFragment;
use super::page::{Page, Section};
use super::problem::{PageError, PageResult};
use super::state::DashboardState;
use super::visitor::SessionUser;

pub(super) fn routes() -> Router<DashboardState> {
    Router::new()
        .merge(overview::routes())
        .merge(actions::routes())
        .merge(logs::routes())
        .merge(variables::routes())
        .merge(settings::routes())
}

/// The uuid of a device in an address; an address with something else there leads nowhere.
#[derive(Debug, Clone)]
struct Uuid(String);

impl FromRequestParts<DashboardState> for Uuid {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, state: &DashboardState) -> PageResult<Self> {
        let uuid = Path::<String>::from_request_parts(parts, state).await;
        match uuid {
            Ok(Path(uuid)) if is_uuid(&uuid) => Ok(Uuid(uuid)),
            _ => Err(PageError::nothing_here()),
        }
    }
}

/// What every page of a device shows and goes by.
#[derive(Debug, Clone, Deserialize)]
struct Device {
    id: i64,
    uuid: String,
    device_name: String,
    #[serde(rename = "belongs_to__application")]
    fleets: Vec<Fleet>,
}

/// Its fleet.
#[derive(Debug, Clone, Deserialize)]
struct Fleet {
    id: i64,
    app_name: String,
}

/// The pages of a device, in the order of their tabs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tab {
    Overview,
    Variables,
    Settings,
}

impl Tab {
    const ALL: [(Tab, &'static str, &'static str); 3] = [
        (Tab::Overview, "Overview", ""),
        (Tab::Variables, "Variables", "/variables"),
        (Tab::Settings, "Settings and tags", "/settings"),
    ];
}

impl Device {
    /// The device of a uuid.
    ///
    /// # Errors
    /// 404 where the visitor does not see it.
    async fn find(visitor: &SessionUser, uuid: &Uuid) -> PageResult<Self> {
        let query =
            "$select=id,uuid,device_name&$expand=belongs_to__application($select=id,app_name)";
        let path = format!("/device(uuid='{}')", uuid.0);
        visitor.row(&path, query).await
    }

    /// The right of the visitor to read it, for what the data API does not have: its log.
    ///
    /// # Errors
    /// 404 where the visitor does not see it (any more).
    async fn right_to_read(&self, visitor: &SessionUser) -> PageResult<RowRight> {
        let right = visitor.right("device", self.id, Method::Read);
        right.await?.ok_or_else(PageError::nothing_here)
    }

    /// Where its pages are.
    fn place(&self) -> String {
        format!("/dashboard/devices/{}", self.uuid)
    }

    /// The same on the API.
    fn path(&self) -> String {
        format!("/device({})", self.id)
    }

    /// The number of its fleet, where it has one that the visitor sees.
    fn fleet(&self) -> Option<i64> {
        self.fleets.first().map(|fleet| fleet.id)
    }

    /// One of its pages. `head` is beside its name: what it says follows what happens.
    fn page<'a>(
        &'a self,
        visitor: &'a SessionUser,
        tab: Tab,
        live: Option<String>,
        head: &LiveFragment,
        main: &Markup,
    ) -> Page<'a> {
        let main = html! {
            (head.placed())
            nav.tabs aria-label="Pages of this device" {
                @for (one, name, below) in Tab::ALL {
                    a href={ (self.place()) (below) } aria-current=[(one == tab).then_some("page")] { (name) }
                }
            }
            (main)
        };
        let fleets = ("Fleets", "/dashboard".to_owned());
        let fleet = self.fleets.first();
        let fleet = fleet.map(|it| (it.app_name.as_str(), format!("/dashboard/fleets/{}", it.id)));
        Page {
            visitor,
            section: Section::Fleets,
            title: &self.device_name,
            above: [Some(fleets), fleet].into_iter().flatten().collect(),
            live,
            main,
        }
    }
}
