//! The plugins of a device, as the device itself reports them through its tunnel.
//!
//! A device's answers are not trusted: they are bounded, and shown as text.

use cloud_core::answer::Refusal;
use http_body_util::{BodyExt as _, Limited};
use maud::{Markup, html};
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::time::timeout;

use super::facts::Facts;
use super::tabs::{PLUGINS, Uuid};
use crate::live::{LiveFragment, LivePage};
use crate::page::Page;
use crate::page_error::{PageError, PageResult};
use crate::plugin_list::{Plugin, PluginList, is_name, read, shown};
use crate::session_user::SessionUser;
use crate::show::table;

/// The maximum number of bytes of a device's answer that are read.
const MOST: usize = 1 << 20;

/// Returns a device's answer, or the reason why there is none.
pub(super) async fn ask<T: DeserializeOwned>(
    user: &SessionUser,
    uuid: &Uuid,
    path: &str,
) -> PageResult<Result<T, String>> {
    let answer = user.look_up(path, ("uuid", json!(uuid.0)));
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
        return Ok(read(status, &[]));
    }
    let body = Limited::new(answer.into_body(), MOST).collect();
    let patience = user.cloud.configuration.reach.answer();
    Ok(match timeout(patience, body).await {
        Ok(Ok(body)) => read(status, &body.to_bytes()),
        Ok(Err(_)) => Err("The device's answer could not be read.".to_owned()),
        Err(_) => Err("The device did not end its answer.".to_owned()),
    })
}

/// `GET /dashboard/devices/<uuid>/plugins`
pub(super) struct DevicePluginsPage {
    facts: Facts,
    uuid: Uuid,
}

impl LivePage for DevicePluginsPage {
    type Address = Uuid;
    type Parts = [LiveFragment; 1];

    async fn load(user: &SessionUser, uuid: Uuid) -> PageResult<Self> {
        let facts = Facts::find(user, &uuid).await?;
        Ok(DevicePluginsPage { facts, uuid })
    }

    async fn parts(&self, _: &SessionUser) -> PageResult<Self::Parts> {
        Ok([self.facts.head()])
    }

    async fn page(&self, user: &SessionUser, [head]: Self::Parts) -> PageResult<Page> {
        let device = &self.facts.device;
        let main = match ask::<PluginList>(user, &self.uuid, "/v3/plugins").await? {
            Ok(list) => list.markup(&device.place()),
            Err(why) => html! { p.empty { (why) } },
        };
        Ok(device.page(PLUGINS, &head, &main))
    }
}

impl PluginList {
    fn markup(&self, device: &str) -> Markup {
        let rows = self.plugins.iter().map(|plugin| plugin.row(device));
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_a_device_of_another_version_lacks_are_not_shown() {
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
    fn answers_of_a_device_are_shown_as_text_and_bounded() {
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
