//! What devices report about their plugins, as pages read it. It is not trusted: a device may send anything.

use maud::{Markup, html};
use serde::Deserialize;

use super::show::badge;

/// The maximum number of characters of one text that are shown.
const TEXT_SHOWN: usize = 400;

/// The answer to `GET /v3/plugins` of a device, as far as it is shown. A device of another version may omit any of it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct PluginList {
    pub(crate) allow_unpinned: bool,
    pub(crate) policy_error: Option<String>,
    pub(crate) plugins: Vec<Plugin>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Plugin {
    pub(crate) name: String,
    pub(crate) version: Option<String>,
    pub(crate) interface: Option<String>,
    pub(crate) state: String,
    pub(crate) refused: Option<String>,
    #[serde(flatten)]
    pub(crate) about: About,
    #[serde(flatten)]
    pub(crate) trust: Trust,
    #[serde(flatten)]
    pub(crate) rights: Rights,
    #[serde(flatten)]
    pub(crate) calls: Calls,
}

impl Plugin {
    /// Its state in words.
    pub(crate) fn state(&self) -> Markup {
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

    /// Who vouches for its file.
    pub(crate) fn trust(&self) -> Markup {
        match &self.trust.signed_by {
            Some(key) => html! { "Key " (shown(key)) },
            None if self.trust.unpinned => badge("wary", "Nobody"),
            None => html! { "Its digest" },
        }
    }
}

/// What a plugin says about itself.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct About {
    pub(crate) description: Option<String>,
    pub(crate) vendor: Option<String>,
}

/// Who vouches for its file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Trust {
    pub(crate) digest: String,
    pub(crate) unpinned: bool,
    pub(crate) signed_by: Option<String>,
}

/// Its routes, what it provides, its events and actions, and what it is granted.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Rights {
    pub(crate) routes: Vec<PluginRoute>,
    pub(crate) provides: Vec<String>,
    pub(crate) events: Vec<String>,
    pub(crate) actions: Vec<String>,
    pub(crate) grants: Vec<String>,
}

/// Statistics of its calls since the supervisor started.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Calls {
    #[serde(rename = "calls")]
    pub(crate) count: u64,
    pub(crate) failures: u64,
    pub(crate) last_error: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PluginRoute {
    pub(crate) method: String,
    pub(crate) path: String,
}

/// Returns whether a text can be the name of a plugin, and part of an address.
pub(crate) fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty() && name.len() <= 63 && name.bytes().all(fits)
}

/// Returns text of a device, cut to the length that is shown.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(TEXT_SHOWN).collect()
}
