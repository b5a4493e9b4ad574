//! One plugin of a device, as the device itself reports it through its tunnel, with its last lines.

use maud::{Markup, html};
use serde::Deserialize;

use super::facts::Facts;
use super::plugins::ask;
use super::tabs::{PLUGINS, Uuid};
use crate::live::{LiveFragment, LivePage};
use crate::page::Page;
use crate::page_error::PageResult;
use crate::plugin_address::PluginAddress;
use crate::plugin_list::{Plugin, PluginList, WORDS_SHOWN, homepage, shown, words};
use crate::session_user::SessionUser;
use crate::show::{short, table, time};

/// The maximum number of lines that are shown.
const LINES_SHOWN: usize = 500;

/// The answer to `GET /v3/plugins/:name/log`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PluginLog {
    lines: Vec<LogLine>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct LogLine {
    time: String,
    level: String,
    message: String,
}

/// `GET /dashboard/devices/<uuid>/plugin/<name>`
pub(super) struct PluginPage {
    facts: Facts,
    address: PluginAddress<Uuid>,
}

impl LivePage for PluginPage {
    type Address = PluginAddress<Uuid>;
    type Parts = [LiveFragment; 1];

    async fn load(user: &SessionUser, address: PluginAddress<Uuid>) -> PageResult<Self> {
        let facts = Facts::find(user, &address.owner).await?;
        Ok(PluginPage { facts, address })
    }

    async fn parts(&self, _: &SessionUser) -> PageResult<Self::Parts> {
        Ok([self.facts.head()])
    }

    async fn page(&self, user: &SessionUser, [head]: Self::Parts) -> PageResult<Page> {
        let device = &self.facts.device;
        let PluginAddress { owner: uuid, name } = &self.address;
        let list = ask::<PluginList>(user, uuid, "/v3/plugins").await?;
        let plugin = match list {
            Ok(list) => {
                let mut plugins = list.plugins.into_iter();
                let plugin = plugins.find(|plugin| plugin.name == *name);
                plugin.ok_or_else(|| "The device has no plugin of this name any more.".to_owned())
            }
            Err(why) => Err(why),
        };
        let log = match &plugin {
            Ok(_) => {
                let path = format!("/v3/plugins/{name}/log");
                ask::<PluginLog>(user, uuid, &path).await?
            }
            Err(_) => Ok(PluginLog::default()),
        };
        let main = html! {
            h2 { "Plugin " (name) }
            @match &plugin {
                Ok(plugin) => {
                    (plugin.facts())
                    section.card.stack aria-labelledby="plugin-log" {
                        h2 id="plugin-log" { "Log" }
                        @match &log {
                            Ok(log) => (log.markup()),
                            Err(why) => p.empty { (why) },
                        }
                    }
                }
                Err(why) => p.empty { (why) },
            }
        };
        let mut page = device.page(PLUGINS, &head, &main);
        page.live = Some(format!("{}/plugin/{name}/live", device.place()));
        Ok(page)
    }
}

impl PluginLog {
    fn markup(&self) -> Markup {
        let first = self.lines.len().saturating_sub(LINES_SHOWN);
        let rows = self.lines.iter().skip(first).map(|line| {
            html! {
                tr {
                    td data-label="Time" { (time(Some(&shown(&line.time)))) }
                    td data-label="Level" { (shown(&line.level)) }
                    td data-label="Message" { (shown(&line.message)) }
                }
            }
        });
        html! {
            @if self.lines.is_empty() {
                p.empty { "It has written nothing since the supervisor started." }
            } @else {
                (table("Last lines", &["Time", "Level", "Message"], None, rows))
            }
        }
    }
}

impl Plugin {
    fn facts(&self) -> Markup {
        let routes = self.rights.routes.iter().take(WORDS_SHOWN);
        html! {
            dl.facts.card {
                dt { "State" } dd { (self.state()) }
                @if let Some(description) = &self.about.description { dt { "Description" } dd { (shown(description)) } }
                @if let Some(vendor) = &self.about.vendor { dt { "Vendor" } dd { (shown(vendor)) } }
                @if let Some(licence) = &self.about.licence { dt { "Licence" } dd { (shown(licence)) } }
                @if let Some(address) = &self.about.homepage { dt { "Homepage" } dd { (homepage(address)) } }
                @if let Some(version) = &self.version { dt { "Version" } dd { (shown(version)) } }
                @if let Some(interface) = &self.interface { dt { "Interface" } dd { (shown(interface)) } }
                dt { "Trusted by" } dd { (self.trust()) }
                @if self.trust.digest.bytes().all(|byte| byte.is_ascii_hexdigit()) && !self.trust.digest.is_empty() {
                    dt { "Digest" } dd { (short(&self.trust.digest)) }
                }
                @if !self.rights.grants.is_empty() { dt { "Grants" } dd { (words(&self.rights.grants)) } }
                @if !self.rights.provides.is_empty() { dt { "Provides" } dd { (words(&self.rights.provides)) } }
                @if !self.rights.events.is_empty() { dt { "Events" } dd { (words(&self.rights.events)) } }
                @if !self.rights.actions.is_empty() { dt { "Actions" } dd { (words(&self.rights.actions)) } }
                dt { "Calls" } dd { (self.calls.count) ", of which " (self.calls.failures) " failed" }
                @if let Some(error) = &self.calls.last_error { dt { "Last failure" } dd { (shown(error)) } }
            }
            @if let Some(reason) = &self.refused { p.notice.bad { (shown(reason)) } }
            @if !self.rights.routes.is_empty() {
                section.card.stack aria-labelledby="routes" {
                    h2 id="routes" { "Routes" }
                    ul { @for route in routes { li { code { (shown(&route.method)) " " (shown(&route.path)) } } } }
                }
            }
        }
    }
}
