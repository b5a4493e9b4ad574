//! A device, and the head of each of its pages.

use axum::extract::{FromRequestParts, Path};
use cloud_core::device::is_uuid;
use data::RowRight;
use http::request::Parts;
use maud::{Markup, html};
use resources::Method;
use serde::Deserialize;

use crate::live::LiveFragment;
use crate::page::{Page, Section};
use crate::page_error::{PageError, PageResult};

use crate::rows::{device_place, fleet_place};
use crate::session_user::SessionUser;
use crate::state::DashboardState;
use crate::tab::Tab;

/// The uuid of a device in an address; anything else there is a 404.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Uuid(pub(super) String);

impl TryFrom<String> for Uuid {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        if is_uuid(&text) {
            Ok(Uuid(text))
        } else {
            Err("it is not the uuid of a device")
        }
    }
}

impl FromRequestParts<DashboardState> for Uuid {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, state: &DashboardState) -> PageResult<Self> {
        let uuid = Path::<Uuid>::from_request_parts(parts, state).await;
        uuid.map(|Path(uuid)| uuid)
            .map_err(|_| PageError::nothing_here())
    }
}

/// The properties of a device that all of its pages use.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Device {
    pub(super) id: i64,
    pub(super) uuid: String,
    pub(super) device_name: String,
    #[serde(rename = "belongs_to__application")]
    pub(super) fleets: Vec<OwnFleet>,
}

/// Its fleet.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct OwnFleet {
    pub(super) id: i64,
    pub(super) app_name: String,
}

/// The pages of a device, in the order of their tabs.
const TABS: [Tab; 4] = [OVERVIEW, VARIABLES, PLUGINS, SETTINGS];
pub(super) const OVERVIEW: Tab = Tab::new("Overview", "");
pub(super) const VARIABLES: Tab = Tab::new("Variables", "/variables");
pub(super) const PLUGINS: Tab = Tab::new("Plugins", "/plugins");
pub(super) const SETTINGS: Tab = Tab::new("Settings and tags", "/settings");

impl Device {
    /// Finds the device of a uuid.
    ///
    /// # Errors
    /// 404 if the user does not see it.
    pub(super) async fn find(user: &SessionUser, uuid: &Uuid) -> PageResult<Self> {
        let query =
            "$select=id,uuid,device_name&$expand=belongs_to__application($select=id,app_name)";
        let path = format!("/device(uuid='{}')", uuid.0);
        user.row(&path, query).await
    }

    /// Returns the user's right to read it, for its log, which is not part of the data API.
    ///
    /// # Errors
    /// 404 if the user does not see it (any more).
    pub(super) async fn right_to_read(&self, user: &SessionUser) -> PageResult<RowRight> {
        let right = user.right("device", self.id, Method::Read);
        right.await?.ok_or_else(PageError::nothing_here)
    }

    /// Returns the address of its pages.
    pub(super) fn place(&self) -> String {
        device_place(&self.uuid)
    }

    /// Returns the address of its settings.
    pub(super) fn settings_place(&self) -> String {
        format!("{}{}", self.place(), SETTINGS.below)
    }

    /// Returns its path on the API.
    pub(super) fn path(&self) -> String {
        format!("/device({})", self.id)
    }

    /// Returns the number of its fleet, if it has one that the user sees.
    pub(super) fn fleet(&self) -> Option<i64> {
        self.fleets.first().map(|fleet| fleet.id)
    }

    /// One of its pages, which is live. `head` is next to its name, and is updated live as well.
    pub(super) fn page(&self, tab: Tab, head: &LiveFragment, main: &Markup) -> Page {
        let main = html! {
            (head.placed())
            (tab.among(&TABS, "device", &self.place()))
            (main)
        };
        let mut page = Page::below(Section::Fleets, &self.device_name, main);
        let fleets = self.fleets.first();
        page.above
            .extend(fleets.map(|fleet| (fleet.app_name.clone(), fleet_place(fleet.id))));
        page.live = Some(format!("{}{}/live", self.place(), tab.below));
        page
    }
}
