//! Tabs: the links between the pages of one fleet or device.

use maud::{Markup, html};

/// One of the pages of a fleet or device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tab {
    name: &'static str,
    /// What its address adds to that of the fleet or device.
    pub(crate) below: &'static str,
}

impl Tab {
    pub(crate) const fn new(name: &'static str, below: &'static str) -> Self {
        Tab { name, below }
    }

    /// The links to all pages of something (`fleet`, `device`) at an address, with this one marked as open.
    pub(crate) fn among(self, all: &[Tab], what: &str, place: &str) -> Markup {
        html! {
            nav.tabs aria-label={ "Pages of this " (what) } {
                @for tab in all {
                    a href={ (place) (tab.below) } aria-current=[(*tab == self).then_some("page")] { (tab.name) }
                }
            }
        }
    }
}
