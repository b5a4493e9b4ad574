//! What devices say of their plugins, as pages read it. It is hostile: a device may say anything.

use serde::Deserialize;

/// Characters of one text that are shown.
const TEXT_SHOWN: usize = 400;

/// What `GET /v3/plugins` of a device answers, as far as it is shown. A device of another version may lack any of it.
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

/// What it says about itself.
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

/// What it answers, does and may do.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Rights {
    pub(crate) routes: Vec<PluginRoute>,
    pub(crate) provides: Vec<String>,
    pub(crate) events: Vec<String>,
    pub(crate) actions: Vec<String>,
    pub(crate) grants: Vec<String>,
}

/// How it has fared since the supervisor started.
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

/// Whether it can be the name of a plugin, and stand in an address.
pub(crate) fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty() && name.len() <= 63 && name.bytes().all(fits)
}

/// Text of a device, as long as it is shown.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(TEXT_SHOWN).collect()
}
