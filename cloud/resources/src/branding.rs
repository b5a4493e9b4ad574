//! The names that a vendor may change without patching the code.

use serde::{Deserialize, Serialize};

/// Prefixes of variables, namespaces of labels and the handles of the platform's own fleets: one value, set once in the
/// configuration file. Everything in the cloud that carries the product's name is derived from it.
///
/// The older forms are accepted alongside the current ones, and written only if [`Branding::written`] lists them
/// (docs/spec/cloud.md#branding).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Branding {
    /// Prefix of variables, with its underscore: `PLATFORM_`.
    pub env_prefix: String,
    /// Older prefixes with the same meaning, with their underscores: `LEGACY_`.
    pub older_env_prefixes: Vec<String>,
    /// Namespace of labels and tags, without a dot at the end: `io.platform`.
    pub label_namespace: String,
    /// Older namespaces with the same meaning: `io.legacy`.
    pub older_label_namespaces: Vec<String>,
    /// The older prefixes and namespaces that are also sent to devices, for those that know no others.
    pub written: Vec<String>,
    /// Handle of the organization of operating systems and supervisors: `platform_os`.
    pub os_organization: String,
    /// The header in which clients identify themselves: `X-Platform-Client`.
    pub client_header: String,
    /// The WebSocket subprotocol of the tunnel between a device and its cloud: `h2.platform`.
    pub tunnel_protocol: String,
}

impl Default for Branding {
    fn default() -> Self {
        Branding {
            env_prefix: "PLATFORM_".into(),
            older_env_prefixes: vec!["LEGACY_".into()],
            label_namespace: "io.platform".into(),
            older_label_namespaces: vec!["io.legacy".into()],
            written: Vec::new(),
            os_organization: "platform_os".into(),
            client_header: "X-Platform-Client".into(),
            tunnel_protocol: "h2.platform".into(),
        }
    }
}

impl Branding {
    /// Returns every prefix of variables that the platform reserves, the current one first.
    pub fn env_prefixes(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.env_prefix)
            .chain(&self.older_env_prefixes)
            .map(String::as_str)
    }

    /// Returns every namespace of labels that the platform reserves, the current one first.
    pub fn label_namespaces(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.label_namespace)
            .chain(&self.older_label_namespaces)
            .map(String::as_str)
    }

    /// Returns all accepted names of the variable `PLATFORM_<name>`, in order of preference.
    pub fn variables(&self, name: &str) -> impl Iterator<Item = String> {
        self.env_prefixes()
            .map(move |prefix| format!("{prefix}{name}"))
    }

    /// Returns the names that no variable of a service may have, in addition to those with a reserved prefix
    /// (docs/spec/cloud.md#rule-variable-names).
    pub fn reserved_variables(&self) -> impl Iterator<Item = &str> {
        self.env_prefixes()
            .map(|prefix| prefix.trim_end_matches('_'))
            .chain(["USER"])
    }

    /// Returns the words that may not be the name of a user or an organization, since people would mistake them for the
    /// platform: the handle of its own organization, and its prefixes and namespaces as words
    /// (docs/spec/cloud.md#model-system-organization).
    pub fn reserved_handles(&self) -> impl Iterator<Item = String> {
        let prefixes = self.env_prefixes().chain(self.label_namespaces());
        std::iter::once(self.os_organization.as_str())
            .chain(prefixes)
            .map(plain)
            .filter(|word| !word.is_empty())
    }

    /// Returns whether a handle is one of [`Branding::reserved_handles`] or reads like one: case and separators do not
    /// count.
    #[must_use]
    pub fn is_reserved_handle(&self, handle: &str) -> bool {
        let joined = |text: &str| text.replace('_', "");
        let handle = joined(&plain(handle));
        self.reserved_handles().any(|word| joined(&word) == handle)
    }
}

/// Converts a name to the form of a handle: lower case, `_` between its words.
fn plain(name: &str) -> String {
    let words = name.split(|it: char| !it.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join("_").to_ascii_lowercase()
}
