//! What the host does for plugins, in response to the calls of `plugin_protocol`. The guarantees of each call are in
//! `wit/`.
//!
//! One file for each capability of ours implements the trait `Host` of its interface, or [`Provide`] for each call that
//! is not generated. Each call is checked here against the grants of the calling plugin, although only granted
//! capabilities are linked: the calling instance belongs to the plugin, so its word is not trusted.

include!("../../../wit/capabilities.rs");
include!("../../../wit/modules.rs");
capabilities!(modules [pub(crate)]);

use std::sync::Arc;

use ::http::Method;
use plugin_protocol::{
    CapabilityAnswer as Answer, CapabilityCall as Call, IdentifyWindow, Origin, Provide,
};

use crate::holdings::Holdings;
use crate::plugin_context::PluginContext;
use crate::refusal::Refusal;

/// Returns the method of a plugin's request if it is one of `allowed`.
fn method_of(name: &str, allowed: &[Method]) -> Option<Method> {
    let method = Method::from_bytes(name.as_bytes()).ok()?;
    allowed.contains(&method).then_some(method)
}

/// A call of an instance: the host carries it out for this plugin.
pub(crate) struct InstanceCall<'a> {
    plugin: &'a Arc<PluginContext>,
    /// What the instance holds.
    holdings: &'a Holdings,
    /// Where the call that the instance serves comes from.
    origin: &'a Origin,
}

impl PluginContext {
    /// Checks that the policy grants the plugin what the call requires.
    fn check(&self, call: &Call) -> Result<(), Refusal> {
        match call.capability() {
            Some(capability) if !self.grants.grants.contains(&capability) => Err(Refusal::Grant {
                plugin: self.name.to_string(),
                call: call.name(),
                capability,
            }),
            _ => Ok(()),
        }
    }

    /// Carries out a call from an instance of the plugin that holds `holdings` and serves a call of this origin.
    pub(crate) async fn provide(
        self: &Arc<Self>,
        holdings: &Holdings,
        origin: &Origin,
        call: Call,
    ) -> Result<Answer, Refusal> {
        self.check(&call)?;
        let host = InstanceCall {
            plugin: self,
            holdings,
            origin,
        };
        call.provide(&host).await
    }
}

impl Provide<IdentifyWindow, Refusal> for InstanceCall<'_> {
    async fn provide(&self, _: IdentifyWindow) -> Result<u32, Refusal> {
        Ok(self.plugin.identify.remaining_ms())
    }
}

#[cfg(test)]
pub(crate) mod tests;
