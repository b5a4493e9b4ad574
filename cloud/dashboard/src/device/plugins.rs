//! The plugins of a device, as the device itself reports them through its tunnel, with the last lines of each.
//!
//! A device's answers are not trusted: they are bounded, and shown as text.

use axum::extract::{FromRequestParts, Path};
use cloud_core::answer::Refusal;
use cloud_core::device::is_uuid;
use http::request::Parts;
use http_body_util::{BodyExt as _, Limited};
use maud::{Markup, html};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::facts::Facts;
use super::tabs::{PLUGINS, Uuid};
use crate::live::{LiveFragment, LivePage};
use crate::page::Page;
use crate::plugin_list::{Plugin, PluginList, is_name, shown};
use crate::problem::{PageError, PageResult};
use crate::show::{badge, short, table, time};
use crate::state::DashboardState;
use crate::visitor::SessionUser;

/// The maximum number of bytes of a device's answer that are read.
const MOST: usize = 1 << 20;
/// The maximum number of plugins that are shown, and of lines of one.
const PLUGINS_SHOWN: usize = 200;
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

/// The name of a plugin in an address; anything else there is a 404.
#[derive(Debug, Clone)]
pub(super) struct PluginAddress {
    uuid: Uuid,
    name: String,
}

impl FromRequestParts<DashboardState> for PluginAddress {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, state: &DashboardState) -> PageResult<Self> {
        let address = Path::<(String, String)>::from_request_parts(parts, state).await;
        match address {
            Ok(Path((uuid, name))) if is_uuid(&uuid) && is_name(&name) => Ok(PluginAddress {
                uuid: Uuid(uuid),
                name,
            }),
            _ => Err(PageError::nothing_here()),
        }
    }
}

/// Returns a device's answer, or the reason why there is none.
async fn ask<T: DeserializeOwned>(
    visitor: &SessionUser,
    uuid: &Uuid,
    path: &str,
) -> PageResult<Result<T, String>> {
    let answer = visitor.look_up(path, ("uuid", json!(uuid.0)));
    let answer = match answer.await {
        Ok(answer) => answer,
        Err(Refusal::Missing(_)) => {
            return Ok(Err(
                "The device is not connected. Look again when it is back.".to_owned(),
            ));
        }
        Err(Refusal::Unreached(why) | Refusal::Unavailable(why)) => {
            return Ok(Err(format!("The device did not answer: {why}.")));
        }
        Err(Refusal::Forbidden(_)) => {
            return Ok(Err(
                "You may not read this: it requires the right to see the device's variables."
                    .to_owned(),
            ));
        }
        Err(error) => return Err(PageError(error)),
    };
    let status = answer.status();
    if !status.is_success() {
        return Ok(Err(format!(
            "The device answered {}. Its supervisor may be too old for this.",
            status.as_u16()
        )));
    }
    let unexpected = || "The device's answer could not be read.".to_owned();
    let body = Limited::new(answer.into_body(), MOST).collect().await;
    let parsed = body
        .ok()
        .and_then(|body| serde_json::from_slice(&body.to_bytes()).ok());
    Ok(parsed.ok_or_else(unexpected))
}

/// `GET /dashboard/devices/<uuid>/plugins`
pub(super) struct DevicePluginsPage {
    facts: Facts,
    uuid: Uuid,
}

impl LivePage for DevicePluginsPage {
    type Address = Uuid;
    type Parts = [LiveFragment; 1];

    async fn load(visitor: &SessionUser, uuid: Uuid) -> PageResult<Self> {
        let facts = Facts::find(visitor, &uuid).await?;
        Ok(DevicePluginsPage { facts, uuid })
    }

    async fn parts(&self, _: &SessionUser) -> PageResult<Self::Parts> {
        Ok([self.facts.head()])
    }

    async fn page(&self, visitor: &SessionUser, [head]: Self::Parts) -> PageResult<Page> {
        let device = &self.facts.device;
        let main = match ask::<PluginList>(visitor, &self.uuid, "/v3/plugins").await? {
            Ok(list) => list.markup(&device.place()),
            Err(why) => html! { p.empty { (why) } },
        };
        Ok(device.page(PLUGINS, &head, &main))
    }
}

impl PluginList {
    fn markup(&self, device: &str) -> Markup {
        let rows = self.plugins.iter().take(PLUGINS_SHOWN);
        let rows = rows.map(|plugin| plugin.row(device));
        html! {
            @if self.allow_unpinned {
                p.notice.wary {
                    "The device is in developer mode: any file in a plugin folder gets what the policy gives to its name."
                }
            }
            @if let Some(error) = &self.policy_error { p.notice.bad { (shown(error)) } }
            @if self.plugins.is_empty() {
                p.empty { "This device has no plugins." }
            } @else {
                (table("Plugins", &["Plugin", "State", "Trusted by", "Calls", "Failures"], None, rows))
            }
        }
    }
}

impl Plugin {
    fn row(&self, device: &str) -> Markup {
        let place = format!("{device}/plugin/{}", self.name);
        html! {
            tr id={ "plugin-" (shown(&self.name)) } {
                th scope="row" {
                    @if is_name(&self.name) { a href=(place) { (self.name) } } @else { (shown(&self.name)) }
                    @if let Some(version) = &self.version { " " (shown(version)) }
                }
                td data-label="State" { (self.state()) }
                td data-label="Trusted by" { (self.trust()) }
                td data-label="Calls" { (self.calls.count) }
                td data-label="Failures" { (self.calls.failures) }
            }
        }
    }

    fn state(&self) -> Markup {
        let (kind, word) = match self.state.as_str() {
            "running" if self.refused.is_some() => ("wary", "Older version running"),
            "running" => ("good", "Running"),
            "loading" => ("busy", "Loading"),
            "other-board" => ("none", "For other boards"),
            "refused" => ("bad", "Refused"),
            _ => ("none", "Unknown"),
        };
        badge(kind, word)
    }

    fn trust(&self) -> Markup {
        match &self.trust.signed_by {
            Some(key) => html! { "Key " (shown(key)) },
            None if self.trust.unpinned => badge("wary", "Nobody"),
            None => html! { "Its digest" },
        }
    }

    fn facts(&self) -> Markup {
        let list = |words: &[String]| {
            let words: Vec<String> = words.iter().take(64).map(|word| shown(word)).collect();
            words.join(", ")
        };
        let routes = self.rights.routes.iter().take(64);
        html! {
            dl.facts.card {
                dt { "State" } dd { (self.state()) }
                @if let Some(description) = &self.about.description { dt { "Description" } dd { (shown(description)) } }
                @if let Some(vendor) = &self.about.vendor { dt { "Vendor" } dd { (shown(vendor)) } }
                @if let Some(version) = &self.version { dt { "Version" } dd { (shown(version)) } }
                @if let Some(interface) = &self.interface { dt { "Interface" } dd { (shown(interface)) } }
                dt { "Trusted by" } dd { (self.trust()) }
                @if self.trust.digest.bytes().all(|byte| byte.is_ascii_hexdigit()) && !self.trust.digest.is_empty() {
                    dt { "Digest" } dd { (short(&self.trust.digest)) }
                }
                @if !self.rights.grants.is_empty() { dt { "Grants" } dd { (list(&self.rights.grants)) } }
                @if !self.rights.provides.is_empty() { dt { "Provides" } dd { (list(&self.rights.provides)) } }
                @if !self.rights.events.is_empty() { dt { "Events" } dd { (list(&self.rights.events)) } }
                @if !self.rights.actions.is_empty() { dt { "Actions" } dd { (list(&self.rights.actions)) } }
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

/// `GET /dashboard/devices/<uuid>/plugin/<name>`
pub(super) struct PluginPage {
    facts: Facts,
    address: PluginAddress,
}

impl LivePage for PluginPage {
    type Address = PluginAddress;
    type Parts = [LiveFragment; 1];

    async fn load(visitor: &SessionUser, address: PluginAddress) -> PageResult<Self> {
        let facts = Facts::find(visitor, &address.uuid).await?;
        Ok(PluginPage { facts, address })
    }

    async fn parts(&self, _: &SessionUser) -> PageResult<Self::Parts> {
        Ok([self.facts.head()])
    }

    async fn page(&self, visitor: &SessionUser, [head]: Self::Parts) -> PageResult<Page> {
        let device = &self.facts.device;
        let PluginAddress { uuid, name } = &self.address;
        let list = ask::<PluginList>(visitor, uuid, "/v3/plugins").await?;
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
                ask::<PluginLog>(visitor, uuid, &path).await?
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_device_of_another_version_lacks_is_not_shown() {
        let list: PluginList =
            serde_json::from_value(json!({ "plugins": [{ "name": "tags", "new": 1 }] })).unwrap();
        let text = list.markup("/d").into_string();
        assert!(
            text.contains("<a href=\"/d/plugin/tags\">tags</a>"),
            "{text}"
        );
        assert!(text.contains("Unknown"), "{text}");
    }

    #[test]
    fn what_a_device_says_is_text_and_bounded() {
        let long = "<b>".repeat(10_000);
        let list: PluginList = serde_json::from_value(json!({
            "policyError": "<script>",
            "plugins": [{ "name": "../../x", "version": long, "refused": "<i>" }],
        }))
        .unwrap();
        let text = list.markup("/d").into_string();
        assert!(
            !text.contains("<script>") && !text.contains("<b>"),
            "{text}"
        );
        assert!(!text.contains("href"), "{text}");
        assert!(text.len() < 8_000, "{}", text.len());
    }
}
