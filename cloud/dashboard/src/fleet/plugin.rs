//! One plugin over the devices of a fleet: what its manifests say, and what each connected device reports about it.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use maud::{Markup, html};

use super::plugin_answers::{FleetAnswers, FleetDevice, FleetDeviceAnswer};
use super::tabs::{Fleet, PLUGINS};
use crate::live::{LiveFragment, LivePage};
use crate::page::Page;
use crate::page_error::PageResult;
use crate::plugin_address::PluginAddress;
use crate::plugin_list::{Plugin, PluginList, PluginMetadata, first_line, homepage, shown, words};
use crate::rows::device_place;
use crate::session_user::SessionUser;
use crate::show::table;

/// The maximum number of files of one device that are shown: several may claim one name.
const FILES_SHOWN: usize = 4;
/// The maximum number of texts that are shown where devices differ.
const TEXTS_SHOWN: usize = 4;

/// The columns of the table of devices.
const COLUMNS: [&str; 7] = [
    "Device",
    "Version",
    "Trusted by",
    "State",
    "Grants",
    "Failures",
    "Last failure",
];

/// `GET /dashboard/fleets/<id>/plugin/<name>`
pub(super) struct FleetPluginPage {
    fleet: Fleet,
    name: String,
}

impl LivePage for FleetPluginPage {
    type Address = PluginAddress<i64>;
    type Parts = [LiveFragment; 0];

    async fn load(user: &SessionUser, address: PluginAddress<i64>) -> PageResult<Self> {
        Ok(FleetPluginPage {
            fleet: Fleet::find(user, address.owner).await?,
            name: address.name,
        })
    }

    async fn parts(&self, _: &SessionUser) -> PageResult<Self::Parts> {
        Ok([])
    }

    async fn page(&self, user: &SessionUser, []: Self::Parts) -> PageResult<Page> {
        let FleetPluginPage { fleet, name } = self;
        let keep = |list: PluginList| -> Vec<Plugin> {
            let plugins = list.plugins.into_iter();
            let of_name = plugins.filter(|plugin| plugin.name == *name);
            of_name.take(FILES_SHOWN).collect()
        };
        let contents = match FleetAnswers::load(user, fleet, keep).await? {
            Ok(answers) => markup(name, &answers),
            Err(why) => html! { p.empty { (why) } },
        };
        let main = html! { h2 { "Plugin " (name) } (contents) };
        Ok(Page {
            live: Some(format!("{}/plugin/{name}/live", fleet.place())),
            ..fleet.page(PLUGINS, &main)
        })
    }
}

fn markup(name: &str, answers: &FleetAnswers<Vec<Plugin>>) -> Markup {
    let lists = answers.devices.iter();
    let plugins = lists.flat_map(|(_, plugins)| plugins.iter().flatten());
    let about: Vec<&PluginMetadata> = plugins.map(|plugin| &plugin.about).collect();
    let devices = answers.devices.iter();
    let rows: Vec<Markup> = devices.flat_map(|answer| rows(name, answer)).collect();
    html! {
        (answers.counts())
        @if about.is_empty() {
            p.empty { "No device that answered has a plugin of this name." }
        } @else {
            (facts(&about))
        }
        @if !rows.is_empty() { (table("Devices", &COLUMNS, Some("Log"), rows.into_iter())) }
    }
}

/// What the manifests say. Devices may have different versions, and one that lies does not speak for the others: texts
/// that differ are shown with the number of devices that report each.
fn facts(about: &[&PluginMetadata]) -> Markup {
    let text = |of: fn(&PluginMetadata) -> Option<&String>| ManifestTexts::new(about, of);
    let facts = [
        ("Description", text(|about| about.description.as_ref())),
        ("Vendor", text(|about| about.vendor.as_ref())),
        ("Licence", text(|about| about.licence.as_ref())),
        ("Homepage", text(|about| about.homepage.as_ref())),
    ];
    let facts = facts.map(|(label, texts)| (label, texts, label == "Homepage"));
    html! {
        @if facts.iter().any(|(_, texts, _)| !texts.is_empty()) {
            dl.facts.card {
                @for (label, texts, is_address) in &facts {
                    @if !texts.is_empty() { dt { (label) } dd { (texts.markup(*is_address)) } }
                }
            }
        }
    }
}

/// The different texts of one fact, with the number of devices that report each, the most frequent one first.
struct ManifestTexts<'a> {
    by_count: Vec<(&'a str, usize)>,
}

impl<'a> ManifestTexts<'a> {
    fn new(about: &[&'a PluginMetadata], of: fn(&PluginMetadata) -> Option<&String>) -> Self {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for text in about.iter().filter_map(|about| of(about)) {
            *counts.entry(text).or_default() += 1;
        }
        let mut by_count: Vec<_> = counts.into_iter().collect();
        by_count.sort_by_key(|(_, count)| Reverse(*count));
        ManifestTexts { by_count }
    }

    fn is_empty(&self) -> bool {
        self.by_count.is_empty()
    }

    fn markup(&self, is_address: bool) -> Markup {
        let different = self.by_count.len();
        html! {
            @for (text, count) in self.by_count.iter().take(TEXTS_SHOWN) {
                div.line-of {
                    @if is_address { (homepage(text)) } @else { (shown(text)) }
                    @if different > 1 { " on " (count) }
                }
            }
            @if different > TEXTS_SHOWN { div.line-of.faint { (different - TEXTS_SHOWN) " more" } }
        }
    }
}

/// The rows of one device: one for each file of that name, or one that says why the device did not answer.
fn rows(name: &str, (device, plugins): &FleetDeviceAnswer<Vec<Plugin>>) -> Vec<Markup> {
    let place = device_place(&device.uuid);
    match plugins {
        Ok(plugins) => {
            let rows = plugins.iter();
            rows.map(|plugin| row(name, device, &place, plugin))
                .collect()
        }
        Err(why) => vec![html! {
            tr {
                (head(device, &place))
                td.faint colspan=(COLUMNS.len()) { (shown(why)) }
            }
        }],
    }
}

fn row(name: &str, device: &FleetDevice, place: &str, plugin: &Plugin) -> Markup {
    let version = plugin.version.as_deref().unwrap_or("unknown");
    html! {
        tr {
            (head(device, place))
            td data-label="Version" { (shown(version)) }
            td data-label="Trusted by" { (plugin.trust()) }
            td data-label="State" {
                (plugin.state())
                @if let Some(reason) = &plugin.refused { span.under { (shown(reason)) } }
            }
            td data-label="Grants" { (words(&plugin.rights.grants)) }
            td data-label="Failures" { (plugin.calls.failures) " of " (plugin.calls.count) " calls" }
            td data-label="Last failure" {
                @if let Some(error) = &plugin.calls.last_error { (first_line(error)) }
            }
            td.act {
                a href={ (place) "/plugin/" (name) "#plugin-log" } aria-label={ "Log of " (device.device_name) } { "Log" }
            }
        }
    }
}

fn head(device: &FleetDevice, place: &str) -> Markup {
    html! {
        th scope="row" {
            a href={ (place) "/plugins" } { (device.device_name) }
            span.under { code { (device.uuid.chars().take(7).collect::<String>()) } }
        }
    }
}
