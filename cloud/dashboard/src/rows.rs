//! Rows that several pages read, and their display.

use maud::{Markup, html};
use serde::Deserialize;

use super::show::{self, badge};

/// A link in a row: `{"__id": 7}`, or the row that it leads to in an array of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) struct Id {
    #[serde(rename = "__id")]
    pub(crate) id: i64,
}

/// Returns the address of the pages of a fleet.
pub(crate) fn fleet_place(id: i64) -> String {
    format!("/dashboard/fleets/{id}")
}

/// Returns the address of the pages of a device.
pub(crate) fn device_place(uuid: &str) -> String {
    format!("/dashboard/devices/{uuid}")
}

/// The fields for a link to a release: `id,commit,raw_version`.
#[derive(Debug, Deserialize)]
pub(crate) struct ReleaseName {
    pub(crate) id: i64,
    pub(crate) commit: String,
    raw_version: String,
}

impl ReleaseName {
    /// Returns its name: its version if it has one, otherwise the beginning of its commit.
    pub(crate) fn text(&self) -> String {
        let version = &self.raw_version;
        if version.is_empty() || version.starts_with("0.0.0") {
            self.commit.chars().take(7).collect()
        } else {
            version.chars().take(40).collect()
        }
    }

    pub(crate) fn place(&self) -> String {
        format!("/dashboard/releases/{}", self.id)
    }

    pub(crate) fn link(&self) -> Markup {
        html! { a href=(self.place()) { (self.text()) } }
    }

    /// A link to the release that a row refers to, if any.
    pub(crate) fn link_of(releases: &[Self]) -> Markup {
        html! {
            @match releases.first() {
                Some(release) => (release.link()),
                None => span.none { "None" },
            }
        }
    }
}

/// The state of a release: `status,is_final,is_invalidated,is_passing_tests`.
#[derive(Debug, Deserialize)]
pub(crate) struct ReleaseState {
    pub(crate) status: String,
    pub(crate) is_final: bool,
    pub(crate) is_invalidated: bool,
    is_passing_tests: bool,
}

impl ReleaseState {
    /// Returns whether a fleet can be pinned to it.
    pub(crate) fn can_be_target(&self) -> bool {
        self.status == "success" && !self.is_invalidated
    }

    pub(crate) fn badges(&self, is_target: bool) -> Markup {
        html! {
            (show::build(&self.status))
            @if is_target { " " (badge("good", "Target")) }
            @if self.is_invalidated { " " (badge("bad", "Invalidated")) }
            @if !self.is_final { " " (badge("none", "Draft")) }
            @if !self.is_passing_tests { " " (badge("wary", "Tests fail")) }
        }
    }
}

/// Whether a device can be reached, and when it last could:
/// `is_online,api_heartbeat_state,last_connectivity_event,changed_api_heartbeat_state_on__date`.
#[derive(Debug, Deserialize)]
pub(crate) struct Connectivity {
    is_online: bool,
    api_heartbeat_state: String,
    last_connectivity_event: Option<String>,
    #[serde(rename = "changed_api_heartbeat_state_on__date")]
    last_heartbeat_event: Option<String>,
}

impl Connectivity {
    /// Shows when the cloud last heard from it, or a word while it holds a tunnel or polls.
    pub(crate) fn last_seen(&self, connected: &str, polls: &str) -> Markup {
        match (self.is_online, self.api_heartbeat_state.as_str()) {
            (true, _) => html! { (connected) },
            (false, "online") => html! { (polls) },
            _ => {
                let last = [&self.last_connectivity_event, &self.last_heartbeat_event];
                // Both have the same format, so the later one is the greater text.
                show::time(last.into_iter().flatten().max().map(String::as_str))
            }
        }
    }

    /// Shows in words whether it can be reached.
    pub(crate) fn badge(&self) -> Markup {
        match (self.is_online, self.api_heartbeat_state.as_str()) {
            (true, _) => badge("good", "Connected"),
            (false, "online") => badge("wary", "Polling, not connected"),
            (false, "timeout") => badge("bad", "Stopped polling"),
            _ => badge("none", "Away"),
        }
    }
}

/// A service: `id,service_name`.
#[derive(Debug, Deserialize)]
pub(crate) struct ServiceName {
    pub(crate) id: i64,
    pub(crate) service_name: String,
}

/// A tag of a device: `tag_key,value`.
#[derive(Debug, Deserialize)]
pub(crate) struct Tag {
    tag_key: String,
    value: String,
}

impl Tag {
    pub(crate) fn text(&self) -> Markup {
        html! { (self.tag_key) @if !self.value.is_empty() { ": " (self.value) } }
    }
}

/// A row that people choose by its name: `id,name`.
#[derive(Debug, Deserialize)]
pub(crate) struct NamedRow {
    pub(crate) id: i64,
    pub(crate) name: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_called_by_a_version_of_its_own_or_its_commit() {
        for (version, text) in [("0.0.0", "f7caf4f"), ("1.2.3+rev4", "1.2.3+rev4")] {
            let release = ReleaseName {
                id: 1,
                commit: "f7caf4f0a1".to_owned(),
                raw_version: version.to_owned(),
            };
            assert_eq!(release.text(), text);
        }
    }
}
