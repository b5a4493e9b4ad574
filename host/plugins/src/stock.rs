//! The plugins that a layout ships with: `stock-plugins.toml` beside the default policy. Whoever builds the
//! layout writes into it which files they are, so that an owner's policy need not follow each update.
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

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StockPlugin {
    /// The files that it may be.
    pub(crate) sha256: FileDigests,
    /// What it answers, below `/v1` and `/v2` as well.
    #[serde(default)]
    pub(crate) routes: RouteGrants,
    /// The actions that it provides.
    #[serde(default)]
    pub(crate) provides: BTreeSet<Action>,
    /// The boards on which it goes before a provider for all boards.
    #[serde(default)]
    pub(crate) boards: BoardPatterns,
}
