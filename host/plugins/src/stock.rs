//! The plugins that a layout ships with: `stock-plugins.toml` beside the default policy. Whoever builds the
//! layout writes into it which files they are, so that an owner's policy need not follow each update.
//!
//! ```toml
//! [plugins.device-info]
//! sha256 = ["5f0c…"]
//! ```

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::pins::FileDigests;

/// The list of stock plugins.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StockPlugins {
    #[serde(default)]
    plugins: BTreeMap<String, StockPlugin>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StockPlugin {
    /// The files that it may be.
    pub(crate) sha256: FileDigests,
}

impl StockPlugins {
    pub(crate) fn get(&self, name: &str) -> Option<&StockPlugin> {
        self.plugins.get(name)
    }
}
