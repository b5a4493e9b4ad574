//! The plugins that a layout ships with: `stock-plugins.toml` next to the default policy. The builder of the layout
//! lists the files in it, so an owner's policy need not follow each update.
//!
//! ```toml
//! [plugins.device-info]
//! sha256 = ["5f0c…"]
//! routes = ["/v2/device/name"]
//!
//! [plugins.led-blink]
//! sha256 = ["93ab…"]
//! provides = ["identify"]
//! ```

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::boards::BoardPatterns;
use crate::pins::FileDigests;
use crate::route_grants::RouteGrants;
use plugin_manifest::Action;

/// The list of stock plugins.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StockPlugins {
    #[serde(default)]
    pub(crate) plugins: BTreeMap<String, StockPlugin>,
}

/// A stock plugin.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StockPlugin {
    /// The digests that its file may have.
    pub(crate) sha256: FileDigests,
    /// The routes that it answers, including those below `/v1` and `/v2`.
    #[serde(default)]
    pub(crate) routes: RouteGrants,
    /// The actions that it provides.
    #[serde(default)]
    pub(crate) provides: BTreeSet<Action>,
    /// The boards on which it takes precedence over a provider for all boards.
    #[serde(default)]
    pub(crate) boards: BoardPatterns,
}
