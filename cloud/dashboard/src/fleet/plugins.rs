//! The plugins of a fleet's devices, as the connected devices report them.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::plugin_answers::FleetAnswers;
use super::tabs::{Fleet, PLUGINS};
use crate::form::Number;
use crate::live::{LiveFragment, LivePage};
use crate::page::Page;
use crate::page_error::PageResult;
use crate::plugin_list::{PLUGINS_READ, Plugin, PluginList, is_name, shown};
use crate::session_user::SessionUser;
use crate::show::table;

/// The maximum number of versions of one plugin that are shown.
const VERSIONS_SHOWN: usize = 20;

/// What one device reports about one plugin, as far as it is counted.
struct PluginCount {
    name: String,
    version: String,
    running: bool,
    refused: bool,
    failures: u64,
}

impl PluginCount {
    fn new(plugin: &Plugin) -> Self {
        PluginCount {
            name: shown(&plugin.name),
            version: shown(plugin.version.as_deref().unwrap_or("unknown")),
            running: plugin.state == "running",
            refused: plugin.refused.is_some(),
            failures: plugin.calls.failures,
        }
    }

    fn from_list(list: PluginList) -> Vec<Self> {
        list.plugins.iter().map(Self::new).collect()
    }
}

/// What the devices of a fleet report about one plugin.
#[derive(Default)]
struct Summary {
    /// The number of devices with each version.
    versions: BTreeMap<String, usize>,
    running: usize,
    refused: usize,
    failures: u64,
}

/// The plugins of all devices that answered.
#[derive(Default)]
struct FleetPlugins(BTreeMap<String, Summary>);

impl FleetPlugins {
    fn add(&mut self, plugins: &[PluginCount]) {
        let FleetPlugins(all) = self;
        for plugin in plugins {
            if all.len() >= PLUGINS_READ && !all.contains_key(&plugin.name) {
                continue;
            }
            let summary = all.entry(plugin.name.clone()).or_default();
            *summary.versions.entry(plugin.version.clone()).or_default() += 1;
            summary.running += usize::from(plugin.running);
            summary.refused += usize::from(plugin.refused);
            summary.failures = summary.failures.saturating_add(plugin.failures);
        }
    }

    fn markup(&self, fleet: &str) -> Markup {
        let FleetPlugins(all) = self;
        let rows = all.iter().map(|(name, summary)| summary.row(fleet, name));
        html! {
            @if all.is_empty() {
                p.empty { "These devices have no plugins." }
            } @else {
                (table("Plugins", &["Plugin", "Versions", "Running", "Refused", "Failures"], None, rows))
            }
        }
    }
}

impl Summary {
    fn row(&self, fleet: &str, name: &str) -> Markup {
        html! {
            tr {
                th scope="row" {
                    @if is_name(name) { a href={ (fleet) "/plugin/" (name) } { (name) } } @else { (name) }
                }
                td data-label="Versions" {
                    @for (version, count) in self.versions.iter().take(VERSIONS_SHOWN) {
                        div.line-of { (version) " on " (count) }
                    }
                }
                td data-label="Running" { (self.running) }
                td data-label="Refused" { (self.refused) }
                td data-label="Failures" { (self.failures) }
            }
        }
    }
}

/// `GET /dashboard/fleets/<id>/plugins`
pub(super) struct FleetPluginsPage(Fleet);

impl LivePage for FleetPluginsPage {
    type Address = Number;
    type Parts = [LiveFragment; 0];

    async fn load(user: &SessionUser, Number(id): Number) -> PageResult<Self> {
        Ok(FleetPluginsPage(Fleet::find(user, id).await?))
    }

    async fn parts(&self, _: &SessionUser) -> PageResult<Self::Parts> {
        Ok([])
    }

    async fn page(&self, user: &SessionUser, []: Self::Parts) -> PageResult<Page> {
        let FleetPluginsPage(fleet) = self;
        let main = match FleetAnswers::load(user, fleet, PluginCount::from_list).await? {
            Ok(answers) => {
                let mut plugins = FleetPlugins::default();
                let lists = answers.devices.iter();
                for list in lists.filter_map(|(_, list)| list.as_ref().ok()) {
                    plugins.add(list);
                }
                html! { (answers.counts()) (plugins.markup(&fleet.place())) }
            }
            Err(why) => html! { p.empty { (why) } },
        };
        Ok(fleet.page(PLUGINS, &main))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn page(lists: &[serde_json::Value]) -> String {
        let mut plugins = FleetPlugins::default();
        for list in lists {
            let list = serde_json::from_value(json!({ "plugins": list })).expect("a list");
            plugins.add(&PluginCount::from_list(list));
        }
        plugins.markup("/f").into_string()
    }

    #[test]
    fn versions_states_and_failures_are_counted_over_devices() {
        let tags = |version: &str, failures: u64| json!({ "name": "tags", "version": version, "state": "running", "failures": failures });
        let refused = json!({ "name": "rails", "state": "refused", "refused": "<b>no grant</b>" });
        let page = page(&[
            json!([tags("0.1.0", 1), refused]),
            json!([tags("0.2.0", 2)]),
        ]);
        for expected in [
            "<a href=\"/f/plugin/tags\">tags</a>",
            "0.1.0 on 1",
            "0.2.0 on 1",
            "<td data-label=\"Running\">2</td><td data-label=\"Refused\">0</td><td data-label=\"Failures\">3</td>",
            "<td data-label=\"Running\">0</td><td data-label=\"Refused\">1</td>",
        ] {
            assert!(page.contains(expected), "{expected}: {page}");
        }
    }

    #[test]
    fn a_fleet_has_so_many_plugins_and_no_more_and_names_that_are_none_lead_nowhere() {
        let one = |device: usize, number: usize| json!({ "name": format!("../{device}-{number}") });
        let of_device = |device| {
            json!(
                (0..150)
                    .map(|number| one(device, number))
                    .collect::<Vec<_>>()
            )
        };
        let page = page(&[of_device(1), of_device(2)]);
        assert_eq!(page.matches("<tr>").count(), 1 + PLUGINS_READ);
        assert!(!page.contains("href"), "{page}");
    }
}
