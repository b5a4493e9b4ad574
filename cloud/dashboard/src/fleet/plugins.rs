//! The plugins of a fleet's devices, as the connected devices report them.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::response::Response;
use cloud_core::answer::Refusal;
use http_body_util::{BodyExt as _, Limited};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;

use super::tabs::{Fleet, PLUGINS};
use crate::form::Number;
use crate::live::{LiveFragment, LivePage};
use crate::page::Page;
use crate::plugin_list::{PluginList, shown};
use crate::problem::{PageError, PageResult};
use crate::show::table;
use crate::visitor::SessionUser;

/// The maximum number of devices that are asked: each takes a twentieth of a second.
const DEVICES: i64 = 100;
/// The maximum number of bytes of their answers that are read.
const MOST: usize = 16 << 20;
/// The maximum number of plugins that are shown.
const PLUGINS_SHOWN: usize = 200;

/// The answer of one device, in a list of several.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    status_code: u16,
    body: serde_json::Value,
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

/// The combined answers of the devices.
#[derive(Default)]
struct Answers {
    /// The number of devices that answered, and of others that are connected.
    answered: usize,
    silent: usize,
    plugins: BTreeMap<String, Summary>,
}

impl Answers {
    fn add(&mut self, list: PluginList) {
        self.answered += 1;
        for plugin in list.plugins.iter().take(PLUGINS_SHOWN) {
            let name = shown(&plugin.name);
            if self.plugins.len() >= PLUGINS_SHOWN && !self.plugins.contains_key(&name) {
                continue;
            }
            let summary = self.plugins.entry(name).or_default();
            let version = plugin.version.as_deref().unwrap_or("unknown");
            *summary.versions.entry(shown(version)).or_default() += 1;
            summary.running += usize::from(plugin.state == "running");
            summary.refused += usize::from(plugin.refused.is_some());
            summary.failures = summary.failures.saturating_add(plugin.calls.failures);
        }
    }

    fn markup(&self) -> Markup {
        let rows = self.plugins.iter().map(|(name, summary)| summary.row(name));
        html! {
            p.faint {
                (self.answered) " of " (self.answered + self.silent) " connected devices answered."
            }
            @if self.plugins.is_empty() {
                p.empty { "These devices have no plugins." }
            } @else {
                (table("Plugins", &["Plugin", "Versions", "Running", "Refused", "Failures"], None, rows))
            }
        }
    }
}

impl Summary {
    fn row(&self, name: &str) -> Markup {
        html! {
            tr {
                th scope="row" { (name) }
                td data-label="Versions" {
                    @for (version, count) in self.versions.iter().take(20) {
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

    async fn load(visitor: &SessionUser, Number(id): Number) -> PageResult<Self> {
        Ok(FleetPluginsPage(Fleet::find(visitor, id).await?))
    }

    async fn parts(&self, _: &SessionUser) -> PageResult<Self::Parts> {
        Ok([])
    }

    async fn page(&self, visitor: &SessionUser, []: Self::Parts) -> PageResult<Page> {
        let FleetPluginsPage(fleet) = self;
        let query = format!(
            "$filter=belongs_to__application eq {} and is_online eq true",
            fleet.id
        );
        let online = visitor.count("/device", &query).await?;
        let main = if online > DEVICES {
            html! {
                p.empty {
                    "This fleet has " (online) " connected devices, more than the " (DEVICES)
                    " that this page can query. Open a single device."
                }
            }
        } else {
            match ask(visitor, fleet.id).await? {
                Ok(answers) => answers.markup(),
                Err(why) => html! { p.empty { (why) } },
            }
        };
        Ok(fleet.page(PLUGINS, &main))
    }
}

async fn ask(visitor: &SessionUser, fleet: i64) -> PageResult<Result<Answers, String>> {
    let answer = visitor.look_up("/v3/plugins", ("appId", json!(fleet)));
    match answer.await {
        Ok(answer) => Ok(read(answer).await),
        Err(Refusal::Missing(_)) => Ok(Err("No device of this fleet is connected.".to_owned())),
        Err(Refusal::Unreached(why) | Refusal::Unavailable(why)) => {
            Ok(Err(format!("The devices did not answer: {why}.")))
        }
        Err(Refusal::Forbidden(_)) => Ok(Err(
            "You may not read this: it requires the right to see the devices' variables."
                .to_owned(),
        )),
        Err(error) => Err(PageError(error)),
    }
}

/// Reads an answer: that of a single device is its own, that of several a list.
async fn read(answer: Response<Body>) -> Result<Answers, String> {
    let unexpected = || "The devices' answers could not be read.".to_owned();
    let status = answer.status();
    let body = Limited::new(answer.into_body(), MOST).collect().await;
    let body = body.map_err(|_| unexpected())?.to_bytes();
    let mut answers = Answers::default();
    if status.as_u16() == 207 {
        let entries: Vec<Entry> = serde_json::from_slice(&body).map_err(|_| unexpected())?;
        for Entry { status_code, body } in entries {
            match serde_json::from_value(body) {
                Ok(list) if (200..300).contains(&status_code) => answers.add(list),
                _ => answers.silent += 1,
            }
        }
    } else if status.is_success() {
        answers.add(serde_json::from_slice(&body).map_err(|_| unexpected())?);
    } else {
        answers.silent += 1;
    }
    Ok(answers)
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    fn list(plugins: serde_json::Value) -> serde_json::Value {
        json!({ "status": "success", "plugins": plugins })
    }

    async fn page(status: StatusCode, body: serde_json::Value) -> String {
        let mut response = Response::new(Body::from(body.to_string()));
        *response.status_mut() = status;
        let answers = read(response).await;
        answers.map_or_else(|why| why, |answers| answers.markup().into_string())
    }

    #[tokio::test]
    async fn versions_states_and_failures_are_counted_over_devices() {
        let tags = |version: &str, failures: u64| json!({ "name": "tags", "version": version, "state": "running", "failures": failures });
        let refused = json!({ "name": "rails", "state": "refused", "refused": "<b>no grant</b>" });
        let body = json!([
            { "statusCode": 200, "body": list(json!([tags("0.1.0", 1), refused])) },
            { "statusCode": 200, "body": list(json!([tags("0.2.0", 2)])) },
            { "statusCode": 502, "body": "no answer" },
            { "statusCode": 200, "body": "nonsense" },
        ]);
        let page = page(StatusCode::MULTI_STATUS, body).await;
        for expected in [
            "2 of 4 connected devices answered.",
            "0.1.0 on 1",
            "0.2.0 on 1",
            "<td data-label=\"Running\">2</td><td data-label=\"Refused\">0</td><td data-label=\"Failures\">3</td>",
            "<td data-label=\"Running\">0</td><td data-label=\"Refused\">1</td>",
        ] {
            assert!(page.contains(expected), "{expected}: {page}");
        }
    }

    #[tokio::test]
    async fn one_device_answers_by_itself_and_nonsense_is_said_so() {
        let one = page(StatusCode::OK, list(json!([]))).await;
        assert!(one.contains("1 of 1 connected devices answered."), "{one}");
        let nonsense = page(StatusCode::MULTI_STATUS, json!({})).await;
        assert_eq!(nonsense, "The devices' answers could not be read.");
    }
}
