//! A fleet, and the head of each of its pages.

use maud::{Markup, html};
use resources::Method;
use serde::Deserialize;

use crate::page::{Page, Section};
use crate::page_error::PageResult;
use crate::rows::fleet_place;
use crate::session_user::SessionUser;
use crate::show::badge;
use crate::tab::Tab;

/// The properties of a fleet that all of its pages show.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Fleet {
    pub(crate) id: i64,
    pub(crate) app_name: String,
    pub(crate) slug: String,
    pub(crate) is_public: bool,
    /// Whether the user may change it, rather than only read it because it is public.
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
const TABS: [Tab; 5] = [DEVICES, RELEASES, VARIABLES, PLUGINS, SETTINGS];
pub(super) const DEVICES: Tab = Tab::new("Devices", "");
pub(super) const RELEASES: Tab = Tab::new("Releases", "/releases");
pub(super) const VARIABLES: Tab = Tab::new("Variables", "/variables");
pub(super) const PLUGINS: Tab = Tab::new("Plugins", "/plugins");
pub(super) const SETTINGS: Tab = Tab::new("Settings", "/settings");

impl Fleet {
    /// Finds the fleet of a number.
    ///
    /// # Errors
    /// 404 if the user does not see it.
    pub(crate) async fn find(user: &SessionUser, id: i64) -> PageResult<Self> {
        let query =
            "$select=id,app_name,slug,is_public&$expand=is_for__device_type($select=slug,name)";
        let path = format!("/application({id})");
        let mut fleet: Fleet = user.row(&path, query).await?;
        let right = user.right("application", id, Method::Update).await?;
        fleet.may_change = right.is_some();
        Ok(fleet)
    }

    /// Returns the address of its pages.
    pub(crate) fn place(&self) -> String {
        fleet_place(self.id)
    }

    /// Returns the address of its settings.
    pub(super) fn settings_place(&self) -> String {
        format!("{}{}", self.place(), SETTINGS.below)
    }

    /// Returns its path on the API.
    pub(super) fn path(&self) -> String {
        format!("/application({})", self.id)
    }

    /// One of its pages, which is live.
    pub(crate) fn page(&self, tab: Tab, main: &Markup) -> Page {
        let main = html! {
            header.head {
                div {
                    h1 { (self.app_name) @if self.is_public { " " (badge("none", "Public")) } }
                    p.faint {
                        (self.slug)
                        @for kind in &self.device_type { " · " (kind.name) }
                    }
                }
                @if self.may_change && tab == DEVICES {
                    a.button.primary href={ (self.place()) "/add-device" } { "Add a device" }
                }
            }
            (tab.among(&TABS, "fleet", &self.place()))
            (main)
        };
        Page {
            live: Some(format!("{}{}/live", self.place(), tab.below)),
            ..Page::below(Section::Fleets, &self.app_name, main)
        }
    }
}
