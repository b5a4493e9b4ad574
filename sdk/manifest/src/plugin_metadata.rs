//! A plugin's description of itself, for people.

use serde::{Deserialize, Serialize};

use crate::bounded_text::check_text;

/// A plugin's description of itself, for people. The device does not act on it, and checks only its form.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginMetadata {
    /// What the plugin is for, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The plugin's maker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vendor: Option<String>,
    /// The licence of its code, as an SPDX expression, for example `Apache-2.0`.
    #[serde(default, alias = "license", skip_serializing_if = "Option::is_none")]
    pub licence: Option<String>,
    /// A web page about it: an address that begins with `https://` or `http://`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub homepage: Option<String>,
}

impl PluginMetadata {
    /// Returns the texts that are set, each with its key in manifests.
    pub fn texts(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let texts = [
            ("description", &self.description),
            ("vendor", &self.vendor),
            ("licence", &self.licence),
            ("homepage", &self.homepage),
        ];
        texts
            .into_iter()
            .filter_map(|(key, text)| Some((key, text.as_deref()?)))
    }

    /// Checks the form of the texts.
    ///
    /// # Errors
    /// The rule that the first invalid text violates.
    pub fn check(&self) -> Result<(), String> {
        self.problems().into_iter().next().map_or(Ok(()), Err)
    }

    /// Returns the rules that the texts violate.
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (key, text) in self.texts() {
            problems.extend(check_text(format_args!("`{key}`"), text).err());
            // People read these in terminals and logs.
            if text.chars().any(char::is_control) {
                problems.push(format!("`{key}` must be one line of text"));
            }
        }
        // It is shown as a link.
        let is_web_address = |homepage: &String| {
            ["https://", "http://"]
                .iter()
                .any(|scheme| homepage.starts_with(scheme))
        };
        if self
            .homepage
            .as_ref()
            .is_some_and(|homepage| !is_web_address(homepage))
        {
            problems.push("`homepage` must begin with `https://` or `http://`".to_owned());
        }
        problems
    }
}
